"""Recordings that a program begins itself, as notebooks do."""

import json
from pathlib import Path

import pytest

from tests.capture.runs import plain
from tests.capture.test_launchers import free_port
from uncork import readers, record
from uncork.errors import UsageError

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent


def test_each_recording_sees_its_own_steps_of_optimisers_built_before() -> None:
    """Model and optimiser are there before the first recording, and stay: every update is a step in each of them."""
    done = plain([str(HERE / "sessions.py")], cwd=HERE)
    assert done.returncode == 0, done.stderr
    *seen, nested, callbacks = json.loads(done.stdout)
    assert seen == [[steps, "optimizer", "Adam", []] for steps in (60, 60, 3, 20)]
    assert nested == [60, False, True, 1], "a recording inside another one goes along with it"
    assert callbacks == 0, "the last recording still hears of garbage collections"
    assert "profiler_st" not in done.stderr


def test_a_profiler_of_the_programs_own_is_noticed_in_each_recording(tmp_path: Path) -> None:
    """The lower one, which ours is too: it sees its operators in the second recording as in the first."""
    (tmp_path / "twice.py").write_text(
        "import torch, uncork\n"
        "from torch.autograd.profiler import profile\n"
        "weight = torch.ones(4, requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight])\n"
        "def train(steps):\n"
        "    for _ in range(steps):\n"
        "        (weight * 2).sum().backward()\n"
        "        optimizer.step()\n"
        "for name in ('first', 'second'):\n"
        "    with uncork.record(name):\n"
        "        train(8)\n"
        "        with profile() as own:\n"
        "            train(30)\n"
        "    print(len(own.key_averages()) > 3)\n"
    )
    done = plain([str(tmp_path / "twice.py")], cwd=tmp_path)
    assert done.stdout == "True\nTrue\n", done.stderr
    assert "no active profiling" not in done.stderr


def test_ranks_that_left_their_group_are_ranks_still(tmp_path: Path) -> None:
    """One of the two leads, though both are alone again when the recording ends; each packs its own part."""
    done = plain([str(HERE / "spawned.py"), str(tmp_path), free_port()], cwd=HERE)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 True", "1 False"]
    assert [(one.rank, one.world_size) for one in readers.read(tmp_path)] == [(0, 2), (1, 2)]
    assert not list(tmp_path.rglob("*.trace.json"))


def test_ranks_that_name_no_folder_share_one(tmp_path: Path) -> None:
    """Ranks that joined their group first find one folder by themselves, and nobody waits for one that is elsewhere."""
    done = plain([str(HERE / "spawned.py"), "", free_port()], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 True", "1 False"]
    (folder,) = (tmp_path / "uncork-runs").iterdir()
    assert [(one.rank, one.world_size) for one in readers.read(folder)] == [(0, 2), (1, 2)]


def test_a_folder_that_torch_cannot_write_into_is_refused(tmp_path: Path) -> None:
    """Torch would leave the sign out of the name, and write elsewhere: one line says so before anything runs."""
    with pytest.raises(UsageError, match="line break"):
        record(tmp_path / "two\nlines").__enter__()
    assert list(tmp_path.iterdir()) == []
