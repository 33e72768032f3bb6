"""Details: what the page tells about one event besides its name and times: module, line, shapes, launch."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from uncork.calltree import CallTree
from uncork.events import EventTable, IntArray
from uncork.measure.views.lanes import Lane
from uncork.measure.views.names import Texts
from uncork.timeline import Timeline

MOST_DETAILS = 60_000
"""Distinct (module, line, shapes, launch) combinations; beyond, launches, then shapes, then lines are left out."""
FIELDS = ("module", "place", "shapes", "note")


def details(tree: CallTree, lanes: Sequence[Lane]) -> tuple[dict[str, npt.NDArray[np.generic]], list[str]]:
    """Return per event the number of its detail, per detail the numbers of its texts, and the texts."""
    timeline = tree.timeline
    known = np.concatenate([_of_lane(tree, lane) for lane in lanes], axis=1)
    known[3] = _launched_alike(timeline, known[3])
    first, back = _distinct(known)
    for field in (3, 2, 1):
        if len(first) <= MOST_DETAILS:
            break
        known[field] = -1
        first, back = _distinct(known)
    texts = Texts()
    spell: tuple[Callable[[int], str], ...] = (
        lambda index: tree.modules[index],
        lambda index: tree.places[index].text,
        lambda index: timeline.events.strings.raw(index).decode("utf-8", "replace"),
        lambda index: _launch_text(timeline.events, index),
    )
    columns: dict[str, npt.NDArray[np.generic]] = {"detail": back}
    for row, (field_name, say) in enumerate(zip(FIELDS, spell, strict=True)):
        of_detail = known[row][first]
        used, place = np.unique(of_detail, return_inverse=True)
        numbers = np.array([texts.number(say(one)) if one >= 0 else 0 for one in used.tolist()], np.int64)
        columns[f"detail_{field_name}"] = numbers[place]
    return columns, texts.texts


def _of_lane(tree: CallTree, lane: Lane) -> IntArray:
    """Return module, place, shapes and (for device work) slice of each event of a lane, -1 where unknown."""
    timeline = tree.timeline
    known = np.full((len(FIELDS), len(lane.source)), -1, np.int64)
    shapes = timeline.events.texts("Input Dims")
    if lane.role == "host":
        at = lane.source
        known[:3] = tree.module[at], tree.place[at], shapes[timeline.host.row[at]]
    elif lane.role == "device":
        op = timeline.launch_op[lane.source]
        at = op[op >= 0]
        known[:3, op >= 0] = tree.module[at], tree.place[at], shapes[timeline.host.row[at]]
        known[3] = lane.source
    return known


def _distinct(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first event of each distinct combination, and the combination of each event."""
    code = np.zeros(columns.shape[1], np.int64)
    first = code[:0]
    for column in columns:
        # Codes stay below the number of events, so the product fits in 64 bits.
        _, first, code = np.unique(
            code * (int(column.max(initial=-1)) + 2) + column + 1, return_index=True, return_inverse=True
        )
    return first, code


def _launched_alike(timeline: Timeline, slices: IntArray) -> IntArray:
    """Return for each device slice a row of the event table launched alike (grid, block, bytes), -1 if none says."""
    table = timeline.events
    found = np.full(len(slices), -1, np.int64)
    place = np.flatnonzero(slices >= 0)
    if len(place):
        rows = timeline.device.row[slices[place]]
        keys = np.stack([table.texts("grid")[rows], table.texts("block")[rows], table.ints("bytes")[rows]])
        first, back = _distinct(keys)
        told: IntArray = np.where((keys[:, first] >= 0).any(axis=0), rows[first], -1)
        found[place] = told[back]
    return found


def _launch_text(table: EventTable, row: int) -> str:
    parts = [f"{key} {value}" for key in ("grid", "block") if (value := table.arg(row, key)) is not None]
    size = table.arg(row, "bytes")
    return " · ".join([*parts, *([f"{size:,} bytes"] if isinstance(size, int) else [])])
