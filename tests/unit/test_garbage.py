"""Collections: from what Python told the recorder, and from traces of several spellings."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.rule_outcomes import outcome
from uncork import readers
from uncork.events import Kind
from uncork.measure import Rank
from uncork.measure.garbage import Garbage
from uncork.recording import Collected, RunInfo
from uncork.report import finding_texts
from uncork.testing import sketch

STEPS = "steps 4 x 10ms\n  main 0ms..9.9ms aten::mm\n"


@pytest.mark.parametrize("category", ["python_function", "cpu_op", "python_gc"])
def test_collections_in_a_trace(tmp_path: Path, category: str) -> None:
    """Newer ones write them among Python's functions, the recorder among operators, others in a category of theirs."""
    event = {"ph": "X", "cat": category, "name": "Python GC", "pid": 1, "tid": 1, "ts": 10.0, "dur": 2.0}
    other = {**event, "cat": "cpu_op", "name": "aten::mm", "ts": 20.0}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event, other]}))
    (recording,) = readers.read(path)
    assert recording.events is not None
    assert recording.events.of_kind(Kind.GC).tolist() == [True, False]


def test_what_python_told_the_recorder() -> None:
    """60 collections of 300 ms in 20 steps of 2 s in all: three per step, 15 ms, 15 % of the time."""
    (recording,) = sketch(STEPS)
    told = Collected(20, 2_000_000_000, 60, 300_000_000, 40_000_000)
    found = Garbage.of(Rank(replace(recording, run=RunInfo(garbage=told))))
    assert found == Garbage(3.0, 15_000_000, 40_000_000, called=False, share=0.15)


@pytest.mark.parametrize(("dur_ns", "share"), [(300_000_000, 0.15), (20_000_000, None)])
def test_the_rule_goes_by_all_steps(dur_ns: int, share: float | None) -> None:
    """The steps of the trace collect nothing; those of the run spend 15 % of their time with it, or 1 %."""
    (recording,) = sketch(STEPS)
    told = Collected(20, 2_000_000_000, 60, dur_ns, 10_000_000)
    found = outcome("garbage-collection", [replace(recording, run=RunInfo(garbage=told))])
    assert [round(one.share, 6) for one in found] == ([share] if share else [])


def test_a_single_long_collection_is_no_habit() -> None:
    """One of 290 ms and 59 that last 10 ms together: 15 % of the time, but no more of it can be expected."""
    (recording,) = sketch(STEPS)
    told = Collected(20, 2_000_000_000, 60, 300_000_000, 290_000_000)
    assert not outcome("garbage-collection", [replace(recording, run=RunInfo(garbage=told))])


def test_the_finding_says_whose_time_it_is_and_who_collects() -> None:
    """15 % of all watched steps, by Python itself; a trace's own calls of gc.collect are of the recorded steps."""
    (recording,) = sketch(STEPS)
    told = Collected(20, 2_000_000_000, 60, 300_000_000, 10_000_000)
    (one,) = outcome("garbage-collection", [replace(recording, run=RunInfo(garbage=told))])
    assert one.location.op == "Python GC"
    assert finding_texts(one, "en")["title"] == "Python's garbage collector takes 15 % of the time of all steps watched"
    assert "not only of the profiled ones" in finding_texts(one, "en")["because"]
    assert "不只是" in finding_texts(one, "zh")["because"]
    calls = "with stacks\nsteps 4 x 10ms\n  main 0ms..5ms aten::mm\n  main 5ms..9ms <built-in function collect>\n"
    (called,) = outcome("garbage-collection", sketch(calls))
    assert called.location.op == "gc.collect"
    assert finding_texts(called, "en")["title"] == "Python's garbage collector takes 40 % of each step"
