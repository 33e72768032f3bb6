"""Lines: what the recorder sees while it records stacks tells from which line an operator was called."""

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.runs import record
from uncork.calltree import CallTree
from uncork.capture.stacks import StackSampler
from uncork.readers import read
from uncork.timeline import Timeline

PROGRAM = """
import torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.randn(600, 600))
optimizer = torch.optim.SGD([weight], lr=1e-3)
def step(x):
    y = x @ weight
    order = torch.argsort(x.detach().flatten())
    return y.sum() + order[0]
for _ in range(80):
    optimizer.zero_grad()
    step(torch.randn(600, 600)).backward()
    optimizer.step()
"""


@pytest.mark.skipif(
    (3, 12, 0) <= sys.version_info < (3, 12, 5),
    reason="needs Python 3.11, or 3.12.5 and newer: torch's tracer loses calls on those between",
)
def test_an_operators_line_is_the_one_that_ran(tmp_path: Path) -> None:
    """The sort is written on line 8, in the function that begins on line 6."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    run = record(tmp_path / "run", [str(script)], cwd=tmp_path)
    assert run.told(0)["faults"] == []
    (recording,) = read(tmp_path / "run")
    assert recording.deep is not None
    tree = CallTree(Timeline(recording.deep))
    names = tree.timeline.events.names(tree.host.row)
    places = {
        name: tree.places[tree.place[at]]
        for at, name in enumerate(names)
        if name == "aten::argsort" and tree.place[at] >= 0 and tree.places[tree.place[at]].exact
    }
    assert places["aten::argsort"].line == 8
    assert places["aten::argsort"].function == "step"


class Growing(list[tuple[int, tuple[str, int, str]]]):
    """Moments to which the sampler's thread adds one of another line whenever they have been gone through."""

    def __iter__(self) -> Iterator[tuple[int, tuple[str, int, str]]]:
        """Go through those that are there, then add one."""
        yield from [self[place] for place in range(len(self))]
        self.append((len(self), ("train.py", len(self), "step")))


def test_moments_may_come_while_they_are_written(tmp_path: Path) -> None:
    """The window with stacks is written while its thread still samples: each row names one of the lines written."""
    sampler = StackSampler()
    sampler.moments = Growing([(0, ("train.py", 0, "step"))])
    sampler.write(tmp_path / "stacks.json", "main")
    told = json.loads((tmp_path / "moments.json").read_text())
    assert told == {"sites": [["train.py", 0, "step"]], "rows": [[0, 0]]}


@pytest.mark.alone
def test_the_end_is_no_sample() -> None:
    """A sampler that pauses is ended without one more look."""
    sampler = StackSampler()
    sampler.run(True)
    sampler.run(False)
    time.sleep(0.05)
    sampler.counts.clear()
    sampler.stop()
    time.sleep(0.1)
    assert not sampler.counts


@pytest.mark.alone
def test_sampling_goes_on_after_a_pause() -> None:
    """Each turn has a thread of its own, which ends with it: between two nobody waits for anybody."""
    sampler = StackSampler()
    for _ in range(2):
        sampler.counts.clear()
        sampler.run(True)
        until = time.monotonic() + 5
        while not sampler.counts and time.monotonic() < until:
            time.sleep(0.01)
        assert sampler.counts
        sampler.run(False)
        time.sleep(0.05)


def test_the_thread_that_begins_a_window_is_watched() -> None:
    """Where another thread takes the recording over, the one before is sampled no longer, though nobody paused it."""
    sampler, over = StackSampler(), threading.Event()
    former = threading.Thread(target=lambda: (sampler.run(True), over.wait()))
    former.start()
    sampler.run(True)
    watched = sampler._watched
    sampler.stop()
    over.set()
    former.join()
    assert watched == threading.get_ident()


def test_a_worker_that_is_killed_soon_leaves_its_lines(tmp_path: Path) -> None:
    """At the end of a script multiprocessing kills persistent workers: a fifth of a second's samples are there."""
    path = tmp_path / "stacks.1.json"
    sampler = StackSampler()
    sampler.write_often_to(path)
    sampler.run(True)
    until = time.monotonic() + 60
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.001)
    written = json.loads(path.read_text())
    sampler.stop()
    assert {row["where"] for row in written} == {"worker"}
    assert sum(row["count"] for row in written) == 20
