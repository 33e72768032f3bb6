"""Programs that run a model on several threads: which is recorded, and what is said of the others."""

import sys
import threading
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.runs import record
from uncork.capture.hooks import Patches
from uncork.capture.options import CaptureOptions, Orders
from uncork.capture.recorder import Recorder
from uncork.capture.threads import Threads, Work

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
ALL = {"baseline", "light", "functions", "deep", "baseline2"}


def told_of(folder: Path, program: str) -> tuple[dict, set[str]]:
    """Return what a program's recording says, and its windows; the program itself notices nothing."""
    run = record(folder, [str(HERE / "beside.py"), program], cwd=HERE)
    assert (run.code, run.err) == (0, "")
    told = run.told(0)
    assert told["faults"] == []
    assert "region-left-open" not in told["notes"]
    return told, set(run.window_names())


@pytest.mark.parametrize(
    ("program", "on_main"),
    [("training_on_a_thread", False), ("actors", True), ("validation", True)],
)
def test_the_thread_that_trains_is_recorded_and_not_the_one_that_infers(tmp_path, program, on_main):
    """Whichever began: the other one's forwards are counted, as far as they were seen, and none of its updates."""
    told, windows = told_of(tmp_path, program)
    assert (told["main_thread"], told["step_rule"]) == (on_main, "optimizer")
    assert windows >= ALL
    assert 50 < told["steps_seen"] <= 305
    assert (told["threads"]["others"], told["threads"]["updates"]) == (1, 0)
    assert told["threads"]["forwards"] > 0


def test_a_pool_has_one_thread_recorded_and_the_others_counted(tmp_path):
    """Each thread makes 200 calls: the recorded one as many steps but the first, which the others may have begun."""
    told, windows = told_of(tmp_path, "pool")
    assert windows >= ALL
    assert told["steps_seen"] in (199, 200, 201)
    assert told["threads"]["others"] == 2
    assert told["threads"]["forwards"] in (398, 399, 400)


@pytest.mark.parametrize(("program", "on_main"), [("short_then_long", False), ("waits", False)])
def test_a_longer_training_takes_the_place_of_one_that_is_over(tmp_path, program, on_main):
    """Five steps on a thread that ends, or that waits from then on, are no loop where another thread makes hundreds."""
    told, windows = told_of(tmp_path, program)
    assert told["main_thread"] is on_main
    assert windows >= ALL
    assert told["threads"] == {"others": 1, "forwards": 0, "backwards": 0, "updates": 5}


def test_threads_that_each_end_after_a_call_are_told(tmp_path):
    """A hundred requests, a thread for each: no window has a step to hold, and that is what is said."""
    run = record(tmp_path / "run", [str(HERE / "beside.py"), "thread_per_request"], cwd=HERE)
    assert (run.code, run.err, run.result()["problem"]) == (0, "", "threads-end")
    assert run.told(0)["faults"] == []
    assert run.told(0)["threads"]["forwards"] > 50


def test_a_fault_on_another_thread_leaves_no_profiler_on(tmp_path):
    """Only the thread that is traced can end its profiler, and does at its next step; the fault is told once."""
    run = record(tmp_path / "run", [str(HERE / "beside.py"), "fault_beside"], cwd=HERE)
    assert (run.code, run.out, run.err) == (0, "False\n", "")
    assert "recorder-fault" in run.told(0)["notes"]
    assert ["injected" in fault for fault in run.told(0)["faults"]] == [True]


def in_backward(graph: int) -> SimpleNamespace:
    """Return a torch whose thread is inside the backward of a graph, -1 for none."""
    return SimpleNamespace(_C=SimpleNamespace(_current_graph_task_id=lambda: graph))


def test_a_thread_of_autograds_own_is_no_thread_of_the_program(tmp_path):
    """A device's backward recomputes and updates on a thread of autograd's: neither begins a recording there."""
    recorder = Recorder(Orders(str(tmp_path), str(HERE), CaptureOptions()))
    recorder.torch = in_backward(3)
    patches = Patches(recorder.torch, recorder, None, lambda: False)
    patches.updated(object())
    assert patches.by_engine == [True]
    assert (recorder.finder.seen, recorder.thread) == (0, None)
    assert not recorder.threads.hears("forwards")
    recorder.finder.backward(updated_inside=False)
    recorder.thread = threading.get_ident() + 1
    assert not recorder.threads.hears("forwards")
    assert recorder.threads.to_json() == {}
    recorder.torch = in_backward(-1)
    assert not recorder.threads.hears("forwards")
    assert recorder.threads.to_json() == {"others": 1, "forwards": 1, "backwards": 0, "updates": 0}


def test_the_thread_that_marks_its_steps_is_recorded(tmp_path):
    """Another one trains too, and began first; the program itself says which steps it means."""
    told, windows = told_of(tmp_path, "marked")
    assert (told["main_thread"], told["step_rule"]) == (True, "mark")
    assert windows >= ALL
    assert 100 < told["steps_seen"] <= 500  # the first thread ends its trace first, which may take a hundred of them
    assert told["threads"]["updates"] > 0


def test_a_call_on_a_thread_that_ends_does_not_end_the_recording(tmp_path):
    """The thread's one forward is no step; the training after it is recorded whole."""
    told, windows = told_of(tmp_path, "one_call_first")
    assert (told["main_thread"], told["threads"]) == (True, {})
    assert 100 <= told["steps_seen"] <= 200  # on a busy machine some may look like bursts of two
    assert windows >= ALL


def test_steps_may_come_while_another_thread_asks_how_long_they_are() -> None:
    """The recorded thread goes on meanwhile, and where threads change at each turn its steps fall into the question."""
    steps, over = deque([(1, "", 0, 5, 0)] * 4096, maxlen=4096), threading.Event()
    finder = SimpleNamespace(rule="optimizer", trains=True, seen=3)
    recorder = SimpleNamespace(
        finder=finder,
        thread=1,
        last_signal_ns=0,
        schedule=SimpleNamespace(is_done=lambda: False),
        journal=SimpleNamespace(steps=steps),
    )
    work = Work(2)
    work.updates = 9

    def make_steps() -> None:
        while not over.is_set():
            steps.append((1, "", 0, 5, 0))

    maker, before = threading.Thread(target=make_steps), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        maker.start()
        better = [Threads(recorder)._is_better(work) for _ in range(100)]  # type: ignore[arg-type]
    finally:
        over.set()
        maker.join()
        sys.setswitchinterval(before)
    assert better == [True] * 100
