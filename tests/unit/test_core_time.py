"""Who had the cores while a window was recorded: what the system counts, how it is read back."""

import json
import multiprocessing
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from uncork.capture import core_time
from uncork.capture.core_time import CoreTime, counts
from uncork.readers import read
from uncork.recording import CoreTime as Told

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")


def _run(seconds: float) -> None:
    """Keep a core busy until this process has had it so long."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_busy_thread_has_its_time_and_a_sleeping_one_none() -> None:
    """50 ms of a core are counted for the thread and its process; 50 ms of sleep for neither."""
    busy = CoreTime()
    _run(0.05)
    told = busy.facts()
    assert 50_000_000 <= told["thread_ns"] <= min(told["process_ns"], told["span_ns"]) + 1_000_000  # read in turn
    asleep = CoreTime()
    time.sleep(0.05)
    told = asleep.facts()
    assert told["span_ns"] >= 50_000_000
    assert told["thread_ns"] < 10_000_000


def test_another_thread_s_counts_are_left_out() -> None:
    """A window that ends on another thread than it began on says nothing of either."""
    begun: list[CoreTime] = []
    thread = threading.Thread(target=lambda: begun.append(CoreTime()))
    thread.start()
    thread.join()
    told = begun[0].facts()
    assert not {"thread", "thread_ns", "queued_ns"} & told.keys()
    assert told["span_ns"] > 0


@linux
def test_children_count_while_they_live_and_when_they_have_ended() -> None:
    """A child's 100 ms are seen before it ends and after it was waited for, once."""
    context = multiprocessing.get_context("fork")
    done, may_end = context.Event(), context.Event()

    def work() -> None:
        _run(0.1)
        done.set()
        may_end.wait()

    cores = CoreTime()
    child = context.Process(target=work)
    child.start()
    done.wait()
    alive = cores.facts()["children_ns"]
    may_end.set()
    child.join()
    ended = cores.facts()["children_ns"]
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert 100_000_000 - 2 * tick_ns <= alive <= ended + 2 * tick_ns < 400_000_000


@linux
def test_a_kernel_that_does_not_count_queues_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Three zeros are what a kernel without schedstats writes: not measured, which is not 0."""
    monkeypatch.setattr(core_time, "OWN_QUEUE", str(tmp_path / "queue"))
    for text, expected in (("0 0 0\n", None), ("5 7 1\n", 7), ("", None)):
        (tmp_path / "queue").write_text(text, encoding="ascii")
        assert counts().get("queued_ns") == expected


@pytest.mark.parametrize(
    ("line", "file", "told"),
    [
        ("0::/job/a", "job/a/cpu.stat", ("usage_usec 9\nthrottled_usec 12\n", 12_000)),
        ("0::/outside", "cpu.stat", ("throttled_usec 5\n", 5_000)),  # in a container the group's folder is the root
        ("4:cpu,cpuacct:/job", "cpu,cpuacct/job/cpu.stat", ("nr_periods 3\nthrottled_time 77\n", 77)),
        ("1:cpu:/", "cpu/cpu.stat", ("throttled_time 8\n", 8)),
        ("0::/", "cpu.stat", ("usage_usec 9\n", None)),  # the root has no quota
    ],
)
def test_a_group_s_quota(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, file: str, told: tuple[str, int | None]
) -> None:
    """Version 2 counts microseconds, version 1 nanoseconds; each where its group lies."""
    (tmp_path / "groups" / file).parent.mkdir(parents=True)
    (tmp_path / "groups" / file).write_text(told[0], encoding="ascii")
    (tmp_path / "own").write_text(f"3:memory:/x\n{line}\n", encoding="utf-8")
    monkeypatch.setattr(core_time, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(core_time, "OWN_GROUP", str(tmp_path / "own"))
    assert counts().get("throttled_ns") == told[1]


def _folder(path: Path, window: dict[str, object], rows: list[list[object]]) -> Path:
    """Return a run folder with one window and such steps, and a trace of one operator."""
    (path / "rank0").mkdir(parents=True)
    (path / "recording.json").write_text("{}", encoding="utf-8")
    (path / "rank0" / "recording.json").write_text(json.dumps({"windows": [window]}), encoding="utf-8")
    (path / "rank0" / "steps.json").write_text(json.dumps({"rows": rows}), encoding="utf-8")
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    (path / "rank0" / "light.trace.json").write_text(json.dumps({"traceEvents": [event]}), encoding="utf-8")
    return path


def test_cores_and_cpu_time_are_read_back(tmp_path: Path) -> None:
    """Each count under its name, one that is missing is not measured; of steps outside windows their CPU time."""
    window = {"name": "light", "step_ns": [9], "span_ns": 20, "thread_ns": 8, "process_ns": 10, "queued_ns": 3}
    rows = [[1, "light", 0, 9, 8], [2, "", 10, 7, 6], [3, "", 20, 7, 5]]
    (recording,) = read(_folder(tmp_path / "run", window, rows))
    light, outside = recording.run.windows
    assert light.cores == Told(span_ns=20, thread_ns=8, process_ns=10, queued_ns=3)
    assert light.cpu_ns == (8,)
    assert (outside.step_ns, outside.cpu_ns) == ((7, 7), (6, 5))


@pytest.mark.parametrize("last", [[3, "", 20, 7], [3, "", 20, 7, None], [3, "", 20, 7, -5], [3, "", 20, 7, 9_000_000]])
def test_cpu_time_that_one_step_lacks_is_told_of_none(tmp_path: Path, last: list[object]) -> None:
    """An older recording, a step that the program's end cut, one that began on another thread: its duration stays."""
    (recording,) = read(_folder(tmp_path / "run", {"name": "light", "step_ns": [9]}, [[2, "", 10, 7, 6], last]))
    light, outside = recording.run.windows
    assert light.cores is None
    assert (outside.step_ns, outside.cpu_ns) == ((7, 7), ())


def test_a_window_s_cpu_time_is_of_its_last_pass(tmp_path: Path) -> None:
    """Steps of an earlier pass have the same name; where durations differ, the steps are not the window's."""
    rows = [[1, "light", 0, 5, 4], [2, "light", 10, 9, 8], [3, "baseline", 20, 6, 5]]
    (recording,) = read(_folder(tmp_path / "run", {"name": "light", "step_ns": [9]}, rows))
    assert recording.run.windows[0].cpu_ns == (8,)
    (recording,) = read(_folder(tmp_path / "other", {"name": "light", "step_ns": [5]}, rows))
    assert recording.run.windows[0].cpu_ns == ()
