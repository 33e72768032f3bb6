"""A sketch as `Recording`s, read back from real files so that nothing takes a shorter way than a trace does."""

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from uncork import readers
from uncork.recording import CoreTime, FunctionTable, Paging, Recording, RunInfo, SampleTable, SpanTable, Window
from uncork.testing.kineto import BASE_NS, FIRST_NS, write_traces
from uncork.testing.sketch import Sketch, SketchError, nanoseconds, read_sketch
from uncork.testing.snapshots import byte_size, write_snapshot

_WINDOW = re.compile(r"(\S+) (\d+) x (\S+)(?: (\{.*\}))?")
_FUNCTION = re.compile(r"(\S+):(\d+) (\S+) (\d+) x (\S+) (\S+)")


def sketch(text: str) -> list[Recording]:
    """Return the recordings of a sketch, one per rank: written as Kineto files and read like any other."""
    known = read_sketch(text)
    with tempfile.TemporaryDirectory(prefix="uncork-sketch-") as folder:
        if not any(block.events for block in known.blocks) and (lines := _snapshot_lines(known, 0)):
            return readers.read(write_snapshot(lines, Path(folder) / "snapshot.pickle"))
        found = [recording for path in write_traces(text, Path(folder)) for recording in readers.read(path)]
    return [_with_recorder(known, rank, recording) for rank, recording in enumerate(found)]


def _with_recorder(known: Sketch, rank: int, recording: Recording) -> Recording:
    """Return a recording with what only the recorder knows: loader times, settings, windows, cProfile."""
    lines = [(word, rest) for only, word, rest in known.extras if only in (None, rank)]
    settings = dict(_setting(rest) for word, rest in lines if word == "setting")
    windows = tuple(_window(rest) for word, rest in lines if word == "window")
    first = next((window for window in windows if window.name == "baseline"), None)
    functions = [
        _match(_FUNCTION, rest, "FILE:LINE NAME CALLS x SELF TOTAL") for word, rest in lines if word == "function"
    ]
    return replace(
        recording,
        run=RunInfo(settings=settings, windows=windows, first_baseline=first) if settings or windows else recording.run,
        functions=_functions(functions) if functions else recording.functions,
        loader=_loader(known, rank) or recording.loader,
        snapshot=_snapshot(known, rank) or recording.snapshot,
        samples=_samples([rest for word, rest in lines if word == "samples"]) or recording.samples,
    )


def _samples(lines: list[str]) -> SampleTable | None:
    series = {}
    for line in lines:
        name, *words = line.split()
        values = np.array([byte_size(word) if word[-1].isalpha() else float(word) for word in words], np.float64)
        series[name] = (BASE_NS + FIRST_NS + np.arange(len(values), dtype=np.int64) * 1_000_000_000, values)
    return SampleTable(series) if series else None


def _snapshot_lines(known: Sketch, rank: int) -> list[str]:
    return [rest for only, word, rest in known.extras if word == "snapshot" and only in (None, rank)]


def _snapshot(known: Sketch, rank: int) -> object | None:
    lines = _snapshot_lines(known, rank)
    if not lines:
        return None
    with tempfile.TemporaryDirectory(prefix="uncork-sketch-") as folder:
        return readers.read(write_snapshot(lines, Path(folder) / "snapshot.pickle"))[0].snapshot


def _setting(rest: str) -> tuple[str, object]:
    name, _, value = rest.partition(" ")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _window(rest: str) -> Window:
    found = _match(_WINDOW, rest, "window NAME N x DURATION")
    told = json.loads(found[4]) if found[4] else {}
    paging = Paging(**told) if "faults" in told else None
    cores = CoreTime(**told) if "span_ns" in told else None
    return Window(found[1], (nanoseconds(found[3]),) * int(found[2]), paging=paging, cores=cores)


def _match(pattern: "re.Pattern[str]", text: str, form: str) -> "re.Match[str]":
    found = pattern.fullmatch(text)
    if not found:
        raise SketchError(f"'{text}' is not written as '{form}'")
    return found


def _functions(found: "list[re.Match[str]]") -> FunctionTable:
    none = np.empty(0, np.int64)
    return FunctionTable(
        file=tuple(line[1] for line in found),
        line=np.array([int(line[2]) for line in found], np.int64),
        name=tuple(line[3] for line in found),
        calls=np.array([int(line[4]) for line in found], np.int64),
        self_ns=np.array([nanoseconds(line[5]) for line in found], np.int64),
        total_ns=np.array([nanoseconds(line[6]) for line in found], np.int64),
        edge_caller=none, edge_callee=none, edge_total_ns=none, edge_calls=none,
    )  # fmt: skip


def _loader(known: Sketch, rank: int) -> SpanTable | None:
    spans = [event for event in known.events(rank) if event.kind == "loader"]
    if not spans:
        return None
    stages = tuple(dict.fromkeys(event.name for event in spans))
    return SpanTable(
        stages=stages,
        stage=np.array([stages.index(event.name) for event in spans], np.int64),
        worker=np.array([int(event.track.partition(" ")[2] or -1) for event in spans], np.int64),
        start_ns=np.array([BASE_NS + FIRST_NS + event.start_ns for event in spans], np.int64),
        dur_ns=np.array([event.end_ns - event.start_ns for event in spans], np.int64),
        value=np.array([int(str(event.args.get("value", 0))) for event in spans], np.int64),
    )
