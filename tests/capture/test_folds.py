"""Several trainings in one process, each with optimisers of its own: folds, trials, tasks."""

import gzip
import json
import pstats
from pathlib import Path

import pytest

from tests.capture.runs import record
from uncork.capture.cycle import Cycle
from uncork.capture.steps import Action, StepFinder

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
FOLDS = str(HERE / "folds.py")
SET_UP_NS = 300_000_000
KINDS = [
    ("folds_of_40", "optimizer"),
    ("folds_of_20", "optimizer"),
    ("folds_of_5", "optimizer"),
    ("folds_that_keep_their_optimizers", "optimizer"),
    ("search_over_optimizers", "optimizer"),
    ("folds_with_a_loader", "loader"),
    ("folds_of_a_gan", "optimizer"),
    ("a_task_is_a_step", "optimizer"),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """Run every kind of several trainings, all in one process."""
    run = record(tmp_path_factory.mktemp("folds") / "run", [FOLDS], cwd=HERE, skip=10**9)
    assert run.code == 0, run.err
    return json.loads(run.out)


@pytest.mark.parametrize(("name", "rule"), KINDS)
def test_steps_of_all_trainings_count(seen: dict[str, list], name: str, rule: str) -> None:
    """Steps of one training after another add up, though each has an optimiser of its own."""
    expected, got, by, faults = seen[name]
    assert (got, by, faults) == (expected, rule, [])


@pytest.mark.parametrize("steps", [8, 11])
def test_no_window_reaches_from_one_fold_into_the_next(tmp_path: Path, steps: int) -> None:
    """After folds of 8 steps the light window is open, after 11 cProfile runs; neither sees the set-up between."""
    run = record(tmp_path / "run", [FOLDS, str(steps)], cwd=HERE)
    assert run.code == 0, run.err
    home = run.folder / "rank0"
    assert run.window_names() == ["warmup", "baseline", "light", "functions", "deep", "baseline2"]
    assert run.told(0)["steps_seen"] == 5 * steps
    for window in ("light", "deep"):
        with gzip.open(home / f"{window}.trace.json.gz", "rt") as file:
            assert "set_up" not in file.read()
    functions = {name for _, _, name in pstats.Stats(str(home / "functions.pstats")).stats}
    assert "train" not in functions  # it was entered before
    assert "set_up" not in functions
    assert max(row[3] for row in json.loads((home / "steps.json").read_text())["rows"][1:]) < SET_UP_NS


def test_a_new_training_ends_the_window_and_its_first_forward_begins_a_step() -> None:
    """Four steps after the last optimiser another parts the loop; forwards before a backward are begins."""
    finder = StepFinder()
    finder.optimizer_built()
    assert [finder.update(1) for _ in range(4)] == [Action.CLOSE] * 4
    assert finder.optimizer_built() is Action.PART
    assert finder.optimizer_built() is Action.NOTHING
    assert [finder.forward(), finder.forward()] == [Action.MOVE, Action.MOVE]
    finder.backward(updated_inside=False)
    assert not finder.wants_forwards
    assert finder.forward() is Action.NOTHING
    assert finder.update(1) is Action.CLOSE
    assert finder.seen == 5


def test_an_optimiser_for_each_step_is_part_of_the_step() -> None:
    """Three steps and then another optimiser are no other training."""
    finder = StepFinder()
    finder.optimizer_built()
    for _ in range(3):
        finder.update(1)
    assert finder.optimizer_built() is Action.NOTHING


def test_an_optimiser_that_loads_its_state_is_no_new_one(tmp_path: Path) -> None:
    """Torch sets an optimiser up again after `load_state_dict`, as a loop does that goes back to its best state."""
    program = tmp_path / "goes_back.py"
    program.write_text(
        "import torch\n"
        "from uncork.capture import inside\n"
        "model = torch.nn.Linear(8, 8)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "for _ in range(12):\n"
        "    model(torch.ones(4, 8)).sum().backward()\n"
        "    optimizer.step()\n"
        "    optimizer.load_state_dict(optimizer.state_dict())\n"
        "print(inside.recorder.finder.optimizers, len(inside.recorder.journal.seen['optimizers']))\n"
    )
    assert record(tmp_path / "run", [str(program)], cwd=tmp_path).out.split() == ["1", "1"]


def test_a_loop_that_was_left_open_counts_its_last_step() -> None:
    """A training that leaves its loader early has its last step open; it counts, though nobody knows when it ended."""
    finder = StepFinder()
    for _ in range(5):
        finder.fetch()
        finder.backward(updated_inside=False)
        finder.update(1)
    assert (finder.seen, finder.step_is_open) == (4, True)
    assert finder.optimizer_built() is Action.PART
    assert (finder.seen, finder.step_is_open) == (5, False)
    assert finder.fetch() is Action.MOVE


def test_an_optimiser_that_begins_withdraws_nothing() -> None:
    """Each update of the second training closes a step, and those of the first stay."""
    cycle = Cycle()
    assert [cycle.add(1) for _ in range(3)] == [True] * 3
    assert [cycle.add(2, begins=place == 0) for place in range(4)] == [True] * 4
    assert cycle.withdrawn == 0
