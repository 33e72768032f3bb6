"""Speedscope: the flame graphs in speedscope's file format (speedscope.app opens it)."""

import json
from collections.abc import Mapping
from typing import Any

from uncork import __version__
from uncork.errors import UncorkError
from uncork.measure.views.flame_view import FlameView
from uncork.measure.views.packed import unpack
from uncork.render import Options
from uncork.report import Report

_UNITS = {"device_ns": "nanoseconds", "self_ns": "nanoseconds", "idle_ns": "nanoseconds", "bytes": "bytes"}


def render(report: Report, options: Options) -> str:
    """Return one profile per tree (call stack, module path) and weight, as JSON text.

    Raises:
        UncorkError: The recording has no stacks of any kind.
    """
    del options  # the format has no texts of ours
    view = report.views.get("FlameView")
    if not isinstance(view, FlameView):
        raise UncorkError("export_without_flame")
    head, columns = unpack(view.block)
    meta: dict[str, Any] = dict(head)
    frames: dict[tuple[int, int], int] = {}
    profiles = [
        _profile(tree["id"], weight, number, columns, frames)
        for number, tree in enumerate(meta["trees"])
        for weight in tree["weights"]
    ]
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": f"uncork {__version__}",
            "name": (report.run.get("sources") or ["uncork"])[0],
            "shared": {"frames": [_frame(meta, name, place) for name, place in frames]},
            "profiles": profiles,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _profile(
    tree: str, weight: str, number: int, columns: Mapping[str, Any], frames: dict[tuple[int, int], int]
) -> dict[str, Any]:
    """Return the nodes that have a weight of their own as samples: the stack above each, and the weight."""
    depth, own = columns[f"t{number}_depth"].tolist(), columns[f"t{number}_{weight}"].tolist()
    keys = zip(columns[f"t{number}_name"].tolist(), columns[f"t{number}_place"].tolist(), strict=True)
    stack: list[int] = []
    samples, weights = [], []
    for level, key, value in zip(depth, keys, own, strict=True):
        del stack[level:]
        stack.append(frames.setdefault(key, len(frames)))
        if value:
            samples.append(list(stack))
            weights.append(value)
    return {
        "type": "sampled",
        "name": f"{tree}: {weight}",
        "unit": _UNITS[weight],
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def _frame(meta: Mapping[str, Any], name: int, place: int) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": meta["names"][name]}
    file, _, line = meta["places"][place].partition(" ")[0].rpartition(":")
    if file and line.isdecimal():
        frame |= {"file": file, "line": int(line)}
    return frame
