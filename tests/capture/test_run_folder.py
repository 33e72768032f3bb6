"""Run folders and cProfile files are read as data, however damaged or hostile they are."""

import cProfile
import json
import marshal
from pathlib import Path

import pytest

from uncork import readers
from uncork.errors import UnreadableError
from uncork.readers.pstats import read_functions
from uncork.recording import Between


def inner() -> int:
    """Return a sum that takes a moment."""
    return sum(range(2000))


def outer() -> int:
    """Call `inner` five times."""
    return sum(inner() for _ in range(5))


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a file that cProfile wrote: `outer` once, `inner` five times."""
    counted = cProfile.Profile()
    counted.runcall(outer)
    path = tmp_path / "a.prof"
    counted.dump_stats(str(path))
    return path


def test_functions_are_counted_as_cprofile_counts(profile: Path) -> None:
    """Calls, nesting and edges: five calls of `inner`, all below `outer`, whose time holds theirs."""
    table = read_functions(profile)
    first, second = table.name.index("outer"), table.name.index("inner")
    assert (table.calls[first], table.calls[second]) == (1, 5)
    assert table.total_ns[first] >= table.total_ns[second] > 0
    edges = {
        (int(a), int(b)): int(n) for a, b, n in zip(table.edge_caller, table.edge_callee, table.edge_calls, strict=True)
    }
    assert sum(calls for (_, callee), calls in edges.items() if callee == second) == 5


def test_a_profile_is_claimed_by_its_content(profile: Path) -> None:
    """A cProfile file is recognised whatever its name."""
    (recording,) = readers.read(profile)
    assert recording.format == "pstats"
    assert recording.functions is not None


@pytest.mark.parametrize(
    "value",
    [
        {("f.py", 1, "f"): (1, 1, 0.1, 0.1, "no dict")},
        {("f.py", 1, "f"): (1, 1, float("inf"), 0.1, {})},
        {("f.py", 1, "f"): (1, 1, 0.1)},
        {("f.py", "1", "f"): (1, 1, 0.1, 0.1, {})},
        {("f.py", 1, "f"): (1, 1, 0.1, 0.1, {("g.py", 1, "g"): (1, 1, 0.1, compile("1", "x", "eval"))})},
        [1, 2],
        compile("1", "x", "eval"),
    ],
)
def test_strangers_in_a_profile_are_refused(tmp_path: Path, value: object) -> None:
    """Anything but the figures that cProfile writes, code objects included, is refused with one line."""
    path = tmp_path / "bad.prof"
    path.write_bytes(marshal.dumps(value))
    with pytest.raises(UnreadableError, match=r"is no cProfile file"):
        read_functions(path)


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_cut_profile_is_refused(profile: Path, cut: int) -> None:
    """A file that ends early is refused with one line."""
    profile.write_bytes(profile.read_bytes()[:cut])
    with pytest.raises(UnreadableError):
        read_functions(profile)


@pytest.fixture
def folder(tmp_path: Path, profile: Path) -> Path:
    """Return a run folder with a cProfile window, spans, samples and stacks, made by hand."""
    run = tmp_path / "run"
    home = run / "rank0"
    home.mkdir(parents=True)
    (run / "recording.json").write_text(json.dumps({"format": 1, "command": ["train.py", "-x"], "exit_code": 3}))
    windows = [{"name": "baseline", "step_ns": [10, 20]}]
    told = {
        "format": 1,
        "world_size": 1,
        "steps_seen": 7,
        "step_rule": "loader",
        "windows": windows,
        "notes": ["a-note"],
    }
    (home / "recording.json").write_text(json.dumps(told))
    (home / "functions.pstats").write_bytes(profile.read_bytes())
    spans = [("next", -1, 50, 5, 2), ("fetch", 0, 10, 7, 4)]
    keys = ("stage", "worker", "start_ns", "dur_ns", "value")
    (home / "spans.jsonl").write_text("".join(json.dumps(dict(zip(keys, one, strict=True))) + "\n" for one in spans))
    (run / "samples.csv").write_text("time_ns,series,value\n5,process_rss_bytes,1e3\n9,process_rss_bytes,2e3\n")
    row = {"where": "worker", "file": "d.py", "line": 3, "function": "__getitem__", "count": 2}
    for name in ("stacks.11.json", "stacks.12.json"):
        (home / name).write_text(json.dumps([row]))
    return run


def test_every_file_is_read(folder: Path) -> None:
    """What was written is what is read: spans in order of time, workers' stacks added up."""
    (recording,) = readers.read(folder)
    assert recording.run is not None
    assert (recording.run.command, recording.run.exit_code) == (("train.py", "-x"), 3)
    assert (recording.run.steps_seen, recording.run.step_rule, recording.run.notes) == (7, "loader", ("a-note",))
    assert [(one.name, one.step_ns) for one in recording.run.windows] == [("baseline", (10, 20))]
    spans = recording.loader
    assert spans is not None
    assert [spans.stages[stage] for stage in spans.stage] == ["fetch", "next"]
    assert (spans.worker.tolist(), spans.start_ns.tolist(), spans.dur_ns.tolist()) == ([0, -1], [10, 50], [7, 5])
    assert recording.samples is not None
    at, values = recording.samples.series["process_rss_bytes"]
    assert (at.tolist(), values.tolist()) == ([5, 9], [1000.0, 2000.0])
    assert [(one.function, one.count) for one in recording.stacks] == [("__getitem__", 4)]


@pytest.mark.parametrize(("moved", "between_ns"), [({}, 70), ({"moved": []}, 0), ({"moved": [3]}, 40)])
def test_what_passes_between_steps_is_the_programs(folder: Path, moved: dict, between_ns: int) -> None:
    """30 and 40 ns lie between three steps: the program's only where it did other work; older recordings do not say."""
    rows = [[1, "", 0, 10, 5], [2, "", 40, 10, 5], [3, "", 90, 10, 5]]
    (folder / "rank0" / "steps.json").write_text(json.dumps({"rows": rows, **moved}))
    (recording,) = readers.read(folder)
    assert recording.run is not None
    assert recording.run.between == Between(2, 20, between_ns)


def test_cut_lines_and_damaged_parts_are_left_out(folder: Path) -> None:
    """A kill may cut the last line, a disk may damage a file: the rest is read, and notes say what is missing."""
    home = folder / "rank0"
    with (home / "spans.jsonl").open("a") as file:
        file.write('{"stage": "next", "worker": -1, "sta')
    (home / "stacks.12.json").write_text("[{")
    (home / "light.trace.json.gz").write_bytes(b"\x1f\x8b\x08\x00 not gzip at all")
    (recording,) = readers.read(folder)
    assert recording.loader is not None
    assert len(recording.loader.stage) == 2
    assert recording.stacks[0].count == 2
    assert recording.run is not None
    assert "light-unreadable" in recording.run.notes


@pytest.mark.parametrize(
    ("problem", "steps", "words"),
    [
        ("not-let-in", 0, "without -I, -E and -S"),
        ("torch-not-imported", 0, "never imported torch"),
        ("torch-too-old", 0, "older than 2.3"),
        ("disk-full", 12, "disk was full"),
        ("recorder-fault", 12, "a fault of its own"),
        ("handler-raised", 12, "signal handler of the program"),
        ("user-profiler", 12, "profiler of its own"),
        ("threads-end", 1, "several threads"),
        ("too-short", 4, "ended after 4 steps"),
        ("no-steps", 0, "No training or inference step"),
    ],
)
def test_an_empty_run_says_why(folder: Path, problem: str, steps: int, words: str) -> None:
    """A run that recorded nothing is refused with its reason and what to do next."""
    (folder / "rank0" / "functions.pstats").unlink()
    (folder / "recording.json").write_text(json.dumps({"problem": problem}))
    (folder / "rank0" / "recording.json").write_text(json.dumps({"steps_seen": steps}))
    with pytest.raises(UnreadableError, match=words):
        readers.read(folder)


def test_a_damaged_index_is_refused(folder: Path) -> None:
    """A recording.json that is no JSON is one clear line."""
    (folder / "recording.json").write_text("{")
    with pytest.raises(UnreadableError, match="damaged"):
        readers.read(folder)


def test_a_ranks_part_is_no_run(folder: Path) -> None:
    """Its folder looks like a run's: who gives it is told which one to give, not that nothing was recorded."""
    (folder / "rank0" / "steps.json").write_text("{}")
    with pytest.raises(UnreadableError, match=f"one rank's part of a run.*: {folder.resolve()}$"):
        readers.read(folder / "rank0")
