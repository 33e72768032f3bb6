"""Reads what `uncork run` left: one Recording per rank, durations from the light window, places from the deep one."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from uncork.errors import UnreadableError
from uncork.readers import kineto
from uncork.readers.cells import with_cells
from uncork.readers.packages import with_packages
from uncork.readers.pstats import read_functions
from uncork.readers.snapshot import read as read_snapshot
from uncork.readers.source import Progress
from uncork.recording import (
    Between,
    Collected,
    CoreTime,
    Device,
    Flags,
    Moments,
    Paging,
    Recording,
    RunFolder,
    RunInfo,
    SampleTable,
    SpanTable,
    StackSample,
    Window,
)

ORDER = 5
"""Asked first: a folder is nobody else's."""
EMPTY = {
    "not-let-in": "run_not_let_in",
    "torch-not-imported": "run_without_torch",
    "torch-too-old": "run_of_old_torch",
    "disk-full": "run_on_full_disk",
    "recorder-fault": "run_with_fault",
    "handler-raised": "run_with_handler",
    "user-profiler": "run_with_profiler",
    "threads-end": "run_of_threads",
}
"""What prevented a recording → what the reader says of it."""
MOST_TEXT_BYTES = 256 << 20
MOST_ROWS = 2_000_000
UNWATCHED = ("", "baseline", "baseline2")
"""Windows in which nothing is recorded but when steps begin and end."""
CLOCKS_APART_NS = 1_000_000
"""The two clocks are read one after the other, and the system may take the core away between."""
Step = tuple[int, str, int, int, int | None]


def claims(head: bytes, path: Path) -> bool:
    """Return whether a path is a run folder."""
    del head
    return RunFolder.is_one(path)


def read(path: Path, progress: Progress | None = None) -> list[Recording]:
    """Return the recordings of a run folder, one per rank.

    Args:
        path: The folder.
        progress: Told how far reading of a trace has come.
    """
    folder = RunFolder(path)
    about = _json(path / RunFolder.RECORDING)
    samples = _samples(path / RunFolder.SAMPLES)
    found = [_rank(home, about, samples, progress) for home in folder.ranks()]
    useful = [
        one for one in found if any(part is not None for part in (one.events, one.deep, one.functions, one.snapshot))
    ]
    if not useful:
        raise _emptiness(path, about, found)
    return useful


def _emptiness(path: Path, about: Mapping[str, Any], found: list[Recording]) -> UnreadableError:
    """Return why a run folder is empty, and what to do next."""
    known = EMPTY.get(str(about.get("problem")))
    if known is not None:
        return UnreadableError(known, path=path)
    if (path / RunFolder.STEPS).is_file():
        return UnreadableError("run_part", path=path, run=path.resolve().parent)
    steps = max((one.run.steps_seen for one in found if one.run), default=0)
    return UnreadableError("run_too_short" if steps else "run_without_steps", path=path, steps=steps)


def _rank(home: Path, about: Mapping[str, Any], samples: SampleTable | None, progress: Progress | None) -> Recording:
    """Return one rank's recording from its folder."""
    told = _json(home / RunFolder.RECORDING) if (home / RunFolder.RECORDING).is_file() else {}
    notes = list(_texts(told.get("notes")))
    light = _trace(home / RunFolder.LIGHT, notes, progress)
    deep = _trace(home / RunFolder.DEEP, notes, progress)
    functions = None
    if (home / RunFolder.FUNCTIONS).is_file():
        try:
            functions = read_functions(home / RunFolder.FUNCTIONS)
        except UnreadableError:
            notes.append("functions-unreadable")
    first = light or deep
    snapshot = None
    if (home / RunFolder.SNAPSHOT).is_file():
        try:
            snapshot = read_snapshot(home / RunFolder.SNAPSHOT)[0].snapshot
        except UnreadableError:
            notes.append("snapshot-unreadable")
    run, steps = _info(told, about, tuple(dict.fromkeys(notes))), _steps(home / RunFolder.STEPS)
    run = replace(run, windows=tuple(replace(one, cpu_ns=_ran(one, steps)) for one in run.windows))
    recording = Recording(
        source=str(home.parent),
        format="run",
        events=light.events if light else None,
        rank=int(home.name[4:]),
        world_size=_int(told.get("world_size")),
        deep=replace(deep, moments=_moments(home / RunFolder.MOMENTS)) if deep else None,
        devices=_devices(told.get("devices")) or (first.devices if first else ()),
        host=_mapping(told.get("host")) or _mapping(about.get("host")),
        flags=light.flags if light else Flags(),
        versions={key: str(value) for key, value in _mapping(told.get("versions")).items()},
        groups=first.groups if first else {},
        repairs=light.repairs if light else {},
        functions=functions,
        loader=_spans(home / RunFolder.SPANS),
        samples=samples,
        stacks=_stacks(home),
        snapshot=snapshot,
        run=replace(
            run,
            windows=(*run.windows, *_unwatched(steps)),
            between=_between(steps, _moved(home / RunFolder.STEPS)),
            steps_ended_ns=max((start_ns + dur_ns for _, _, start_ns, dur_ns, _ in steps), default=None),
        ),
    )
    return with_cells(with_packages(recording, told.get("packages")), _mapping(told.get("cells")))


def _info(told: Mapping[str, Any], about: Mapping[str, Any], notes: tuple[str, ...]) -> RunInfo:
    first = _mapping(told.get("first_baseline"))
    return RunInfo(
        command=_texts(about.get("command")),
        exit_code=_int(about.get("exit_code")),
        step_rule=str(told.get("step_rule") or "none"),
        steps_seen=_int(told.get("steps_seen")) or 0,
        windows=tuple(_window(_mapping(window)) for window in _list(told.get("windows"))),
        first_baseline=_window(first) if first else None,
        user_profiler=bool(told.get("user_profiler")),
        notes=notes,
        settings=_mapping(told.get("settings")),
        garbage=_collected(_mapping(told.get("garbage"))),
        threads=_mapping(told.get("threads")),
        startup={key: at for key, at in _mapping(told.get("startup")).items() if _int(at) is not None},
        modules={
            str(path): (sizes[0], sizes[1], sizes[2])
            for path, sizes in _mapping(told.get("modules")).items()
            if len(_list(sizes)) == 3 and None not in map(_int, sizes)
        },
    )


def _window(told: Mapping[str, Any]) -> Window:
    figures = [_int(told.get(key)) for key in ("faults", "system_ns", "cpu_ns", "growth_pages")]
    faults, system_ns, cpu_ns, growth_pages = (one or 0 for one in figures)
    return Window(
        str(told.get("name")),
        tuple(one for one in map(_int, _list(told.get("step_ns"))) if one is not None),
        _int(told.get("start_ns")),
        None if None in figures else Paging(max(faults, 0), max(system_ns, 0), max(cpu_ns, 0), growth_pages),
        _cores(told),
    )


def _cores(told: Mapping[str, Any]) -> CoreTime | None:
    """Return who had the cores; None where one of the clocks is missing or stood still."""
    clocks = [_count(told.get(f"{name}_ns")) for name in ("span", "thread", "process")]
    span_ns, thread_ns, process_ns = (one or 0 for one in clocks)
    if None in clocks or not span_ns:
        return None
    others = (_count(told.get(f"{name}_ns")) for name in ("queued", "children", "machine", "throttled"))
    return CoreTime(span_ns, thread_ns, process_ns, *others)


def _collected(told: Mapping[str, Any]) -> Collected | None:
    """Return what the collector took; None where no step was watched."""
    each = [_int(one) for one in _list(told.get("collections"))]
    figures = [_int(told.get(key)) or 0 for key in ("steps", "steps_ns", "dur_ns", "longest_ns")]
    if not each or None in each or min(figures[:2]) <= 0:
        return None
    steps, steps_ns, dur_ns, longest_ns = figures
    return Collected(steps, steps_ns, sum(filter(None, each)), max(dur_ns, 0), max(longest_ns, 0))


def _steps(path: Path) -> list[Step]:
    """Return number, window, begin, duration of each step of which all four are told, and its CPU time where it is."""
    rows = map(_list, _list(_json(path).get("rows")) if path.is_file() else ())
    told = [(row[1], [_int(one) for one in (row[0], *row[2:4])], row[4:]) for row in rows if 4 <= len(row) <= 5]
    return [
        (number, str(window), start_ns, dur_ns, _cpu(cpu, dur_ns))
        for window, (number, start_ns, dur_ns), cpu in told
        if number is not None and start_ns is not None and dur_ns is not None and dur_ns >= 0
    ]


def _cpu(told: list[Any], dur_ns: int) -> int | None:
    """Return a step's CPU time; one that took more than the clock shows began on another thread."""
    known = _count(told[0]) if told else None
    return known if known is not None and known <= dur_ns + CLOCKS_APART_NS else None


def _ran(window: Window, steps: list[Step]) -> tuple[int, ...]:
    """Return the CPU time of a window's steps: those of its name that took as long; the latest are of the last pass."""
    rows = [(dur_ns, cpu_ns) for _, name, _, dur_ns, cpu_ns in steps if name == window.name][-len(window.step_ns) :]
    known = tuple(cpu_ns for dur_ns, cpu_ns in rows if cpu_ns is not None)
    return known if tuple(dur_ns for dur_ns, _ in rows) == window.step_ns and len(known) == len(rows) else ()


def _unwatched(steps: list[Step]) -> tuple[Window, ...]:
    """Return the steps outside all windows as one more, where there are any."""
    outside = [(dur_ns, cpu_ns) for _, window, _, dur_ns, cpu_ns in steps if not window]
    known = tuple(cpu_ns for _, cpu_ns in outside if cpu_ns is not None)
    whole = known if len(known) == len(outside) else ()
    return (Window("unwatched", tuple(dur_ns for dur_ns, _ in outside), cpu_ns=whole),) if outside else ()


def _moved(path: Path) -> set[int] | None:
    """Return the steps before which the program did other work; None in recordings that do not tell."""
    told = _json(path).get("moved") if path.is_file() else None
    return None if told is None else {one for one in map(_int, _list(told)) if one is not None}


def _between(steps: list[Step], moved: set[int] | None) -> Between | None:
    """Return what passed between steps where no profiler was on, nor switched on or off; None where there is none.

    Args:
        steps: The steps.
        moved: Those before which the program did other work; before each other only the recorder did.
    """
    count = steps_ns = between_ns = 0
    for (number, window, start_ns, dur_ns, _), (next_number, next_window, next_ns, next_dur_ns, _) in pairwise(steps):
        if window == next_window and window in UNWATCHED and next_number == number + 1:
            count, steps_ns = count + 1, steps_ns + next_dur_ns
            between_ns += max(next_ns - start_ns - dur_ns, 0) if moved is None or next_number in moved else 0
    return Between(count, steps_ns, between_ns) if count else None


def _trace(path: Path, notes: list[str], progress: Progress | None) -> Recording | None:
    """Return a window's trace, packed or (after a kill of everything) plain; None where there is none."""
    plain = path.with_name(path.name.removesuffix(".gz"))
    present = path if path.is_file() else plain if plain.is_file() else None
    if present is None:
        return None
    try:
        found = kineto.read(present, progress)
    except UnreadableError:
        notes.append(f"{path.name.split('.')[0]}-unreadable")
        return None
    return replace(found[0], source=str(present)) if found else None


def _spans(path: Path) -> SpanTable | None:
    """Return the loader's spans in order of time; a line that was cut by a kill is left out."""
    stages: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for line in _lines(path):
        try:
            told = json.loads(line)
            stage = stages.setdefault(str(told["stage"]), len(stages))
            rows.append((stage, *(int(told[key]) for key in ("worker", "start_ns", "dur_ns", "value"))))  # type: ignore[arg-type]
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
    try:
        table = np.array(rows, np.int64)
    except OverflowError:
        table = np.array([row for row in rows if None not in map(_int, row)], np.int64)
    if not len(table):
        return None
    table = table[np.argsort(table[:, 2], kind="stable")]
    return SpanTable(tuple(stages), *(np.ascontiguousarray(column) for column in table.T))


def _samples(path: Path) -> SampleTable | None:
    """Return the samples by series."""
    columns: defaultdict[str, tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    for line in _lines(path):
        try:
            time, name, number = line.split(",")
            time_ns, value = int(time), float(number)
        except ValueError:
            continue
        if _int(time_ns) is not None and isfinite(value):
            columns[name][0].append(time_ns)
            columns[name][1].append(value)
    if not columns:
        return None
    return SampleTable({name: (np.array(at, np.int64), np.array(of)) for name, (at, of) in columns.items()})


def _stacks(home: Path) -> tuple[StackSample, ...]:
    """Return the sampled frames of the main process and of all workers, like ones counted together."""
    counts: defaultdict[tuple[str, str, int, str], int] = defaultdict(int)
    for path in sorted(filter(Path.is_file, home.glob("stacks*.json"))):
        try:
            rows = json.loads(_text(path))
            for row in rows:
                counts[str(row["where"]), str(row["file"]), int(row["line"]), str(row["function"])] += int(row["count"])
        except (UnreadableError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(StackSample(*where, count) for where, count in ordered)


def _moments(path: Path) -> Moments | None:
    """Return the lines that were seen in the window with stacks; None where there are none or the file is broken."""
    if not path.is_file():
        return None
    try:
        told = json.loads(_text(path))
        sites = tuple((str(file), int(line), str(function)) for file, line, function in told["sites"])
        rows = np.array(told["rows"], np.int64).reshape(-1, 2)
    except (UnreadableError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
    rows = rows[(rows[:, 1] >= 0) & (rows[:, 1] < len(sites))]
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return Moments(rows[:, 0], rows[:, 1], sites)


def _lines(path: Path) -> list[str]:
    return _text(path).splitlines()[:MOST_ROWS] if path.is_file() else []


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_TEXT_BYTES:
            raise UnreadableError("run_file_large", path=path)
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnreadableError("cannot_open", path=path, reason=error.strerror) from error


def _finite(text: str) -> float | None:
    """Return a number, None for one too large to be any: no report could hold it."""
    value = float(text)
    return value if isfinite(value) else None


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_text(path), parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise UnreadableError("run_damaged", path=path) from error
    if not isinstance(value, dict):
        raise UnreadableError("no_run", path=path)
    return value


def _devices(told: object) -> tuple[Device, ...]:
    found = []
    for about in map(_mapping, _list(told)):
        major, minor, *_ = *map(_int, _list(about.get("compute_capability"))), None, None
        found.append(
            Device(
                index=_int(about.get("index")) or 0,
                name=str(about.get("name") or ""),
                memory_bytes=_int(about.get("memory_bytes")),
                compute_capability=None if major is None or minor is None else (major, minor),
                multiprocessors=_int(about.get("multiprocessors")),
            )
        )
    return tuple(found)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in _list(value))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _int(value: object) -> int | None:
    """Return a whole number that fits 64 bits; of anything else, none."""
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None


def _count(value: object) -> int | None:
    """Return such a number where it is 0 or more."""
    number = _int(value)
    return number if number is not None and number >= 0 else None
