"""Messages of gloo that are under way where steps end: no trace is recorded of such a job."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture.runs import record
from tests.capture.test_launchers import free_port
from uncork.capture.open_works import OpenWorks

HERE = Path(__file__).parent


class Work:
    """A stand-in for c10d's work."""

    def __init__(self, *, done: bool) -> None:
        self._done = done

    def is_completed(self) -> bool:
        """Return whether it is done."""
        return self._done


def job(backend: str) -> tuple[Any, Any]:
    """Return a stand-in for torch, and its class of process groups, whose `recv` says what it was given."""

    class Group:
        def recv(self, work: object) -> object:
            return work

    distributed = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_backend=lambda: backend, ProcessGroup=Group
    )
    return SimpleNamespace(distributed=distributed), Group


@pytest.mark.parametrize(
    ("backend", "done", "kept", "seen"),
    [
        ("gloo", False, True, True),
        ("gloo", True, True, False),
        ("gloo", False, False, False),
        ("cpu:gloo,cuda:nccl", False, True, True),
        ("nccl", False, True, False),
    ],
)
def test_a_work_that_is_not_done_is_seen(backend: str, *, done: bool, kept: bool, seen: bool) -> None:
    """Over gloo only; of a work that nobody keeps nobody waits for the end."""
    torch, group = job(backend)
    works, own = OpenWorks(), group.recv
    works.begin(torch)
    work: Work | None = Work(done=done)
    assert group().recv(work) is work
    if not kept:
        work = None
    works.look()
    assert works.seen is seen
    works.end()
    assert group.recv is own


def test_whatever_a_method_returns_reaches_the_program() -> None:
    """None, and what cannot be referred to weakly, are nothing to look at."""
    torch, group = job("gloo")
    works = OpenWorks()
    works.begin(torch)
    works.begin(torch)  # again, as each window before the first trace does
    assert [group().recv(one) for one in (None, 3)] == [None, 3]
    works.look()
    assert not works.seen
    works.end()
    assert group().recv.__name__ == "recv"


@pytest.mark.torch
@pytest.mark.parametrize(("how", "traces"), [("within", True), ("later", False)])
def test_ranks_that_receive_ahead_are_recorded_without_traces(tmp_path: Path, how: str, *, traces: bool) -> None:
    """Rank 0 is owed two messages at the end of each step; the sum that it prints is as without the recorder."""
    argv = ["torch.distributed.run", "--nproc_per_node", "2", "--master-port", free_port()]
    run = record(tmp_path / "run", [*argv, str(HERE / "messages.py"), how], cwd=HERE, module=True)
    assert run.code == 0, run.err
    total = 4.0 * sum(range(30) if how == "within" else range(2, 30))
    assert run.out == f"{total}\n"
    names = {one["name"] for one in run.told(0)["windows"]}
    assert ("light" in names, "deep" in names) == (traces, traces)
    assert ("works-left-open" in run.told(0)["notes"]) is not traces
    assert {"baseline", "functions"} <= names
