"""What Python's collector takes is told by Python itself, and nobody else notices."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.capture.runs import plain, record
from uncork.capture import garbage
from uncork.capture.garbage import Garbage

HERE = Path(__file__).parent


class Trace:
    """Stands for the recorder's regions."""

    on = False


class Torch:
    """Has torch's regions, and keeps what was opened and closed."""

    said: list[str]

    class _C:
        class _profiler:  # noqa: N801
            class _RecordFunctionFast:
                def __init__(self, name: str) -> None:
                    self.name = name

                def __enter__(self) -> None:
                    Torch.said.append(f"open {self.name}")

                def __exit__(self, *_: object) -> None:
                    Torch.said.append("close")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Garbage, Trace, dict[str, int]]]:
    """Return a watch over collections, whether a trace is recorded, and the time; Python's own collector is off."""
    now = {"ns": 0}
    monkeypatch.setattr(garbage.time, "perf_counter_ns", lambda: now["ns"])
    monkeypatch.setattr(garbage, "carry_on", lambda *_: None)  # pytest has a hook of its own
    Torch.said = []
    mine, trace = Garbage(), Trace()
    was_on = gc.isenabled()
    gc.disable()
    mine.watch(Torch, trace)
    yield mine, trace, now
    mine.end()
    if was_on:
        gc.enable()


def collect(mine: Garbage, now: dict[str, int], took_ns: int, generation: int) -> None:
    """Tell of a collection as Python does."""
    about: dict[str, Any] = {"generation": generation, "collected": 0, "uncollectable": 0}
    mine._told("start", about)
    now["ns"] += took_ns
    mine._told("stop", about)


def test_what_was_not_the_loop_is_forgotten(watched: tuple[Garbage, Trace, dict[str, int]]) -> None:
    """Of an evaluation's steps, with the imports after it, nothing is left once training shows; its own count."""
    mine, _, now = watched
    mine.is_timed = True
    collect(mine, now, 1000, 2)
    mine.add_step(9000)
    mine.is_timed = True
    collect(mine, now, 500, 2)
    mine.forget()
    mine.is_timed = True
    collect(mine, now, 5, 0)
    mine.add_step(100)
    assert mine.to_json() == {
        "steps": 1, "steps_ns": 100, "collections": [1, 0, 0], "dur_ns": 5, "longest_ns": 5,
    }  # fmt: skip


def test_collections_of_timed_steps_are_added_up(watched: tuple[Garbage, Trace, dict[str, int]]) -> None:
    """Two of 5 and 20 ns in a step of 100 ns count; one between steps and one in a traced step do not."""
    mine, trace, now = watched
    collect(mine, now, 1000, 2)
    mine.is_timed = True
    collect(mine, now, 5, 0)
    collect(mine, now, 20, 2)
    mine.add_step(100)
    mine.is_timed, trace.on = False, True
    collect(mine, now, 1000, 2)
    mine.add_step(100)
    assert mine.to_json() == {
        "steps": 1, "steps_ns": 100, "collections": [1, 0, 1], "dur_ns": 25, "longest_ns": 20,
    }  # fmt: skip
    assert Torch.said == ["open Python GC", "close"]


def test_collections_of_no_whole_step_count_nowhere(watched: tuple[Garbage, Trace, dict[str, int]]) -> None:
    """A step that was struck, and what comes after the last one, have no length: their collections do not count."""
    mine, _, now = watched
    mine.begin_step(is_timed=True)
    collect(mine, now, 700, 2)
    mine.begin_step(is_timed=True)
    collect(mine, now, 5, 1)
    mine.add_step(100)
    mine.begin_step(is_timed=True)
    collect(mine, now, 9000, 2)
    assert mine.to_json() == {
        "steps": 1, "steps_ns": 100, "collections": [0, 1, 0], "dur_ns": 5, "longest_ns": 5,
    }  # fmt: skip


def test_a_mark_is_ended_by_the_thread_that_collects(watched: tuple[Garbage, Trace, dict[str, int]]) -> None:
    """A window of this thread ends while another one collects: torch refuses to end a region that is not begun yet."""
    mine, trace, _ = watched
    trace.on = True
    began, closed = threading.Event(), threading.Event()

    def collect_beside() -> None:
        mine._told("start", {"generation": 0})
        began.set()
        closed.wait(10)
        mine._told("stop", {"generation": 0})

    beside = threading.Thread(target=collect_beside)
    beside.start()
    began.wait(10)
    mine.close()
    said = list(Torch.said)
    closed.set()
    beside.join()
    assert said == ["open Python GC"]
    assert Torch.said == ["open Python GC", "close"]


def test_a_fault_ends_the_watch_alone(watched: tuple[Garbage, Trace, dict[str, int]]) -> None:
    """Nothing is thrown into the program whose object was collected; a callback of the program's own stays."""
    mine, _, _ = watched
    heard: list[str] = []

    def own(phase: str, _: dict[str, int]) -> None:
        heard.append(phase)

    gc.callbacks.append(own)
    try:
        mine.is_timed = True
        mine._told("start", {})
        mine._told("stop", {})  # Python always says which generation
        assert mine._told not in gc.callbacks
        gc.collect()
        assert heard == ["start", "stop"]
    finally:
        gc.callbacks.remove(own)


@pytest.mark.torch
def test_collections_of_a_run(tmp_path: Path) -> None:
    """Forty steps collect, those observed count apart; the program's callback and settings are as without us."""
    argv = [str(HERE / "programs.py"), "collecting"]
    run = record(tmp_path / "run", argv, cwd=HERE)
    alone = plain(argv, cwd=HERE)
    assert (run.out, run.err, run.code) == (alone.stdout, "", 0)
    told = run.told(0)
    names = [window["name"] for window in told["windows"]]
    assert "light" in names
    observed = sum(len(one["step_ns"]) for one in told["windows"] if one["name"] in ("light", "functions", "deep"))
    assert told["garbage"]["steps"] == 40 - observed
    assert told["garbage"]["collections"] == [0, 0, 40 - observed]
    assert 0 < told["garbage"]["longest_ns"] <= told["garbage"]["dur_ns"] < told["garbage"]["steps_ns"]
