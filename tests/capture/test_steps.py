"""The steps of a program are found without a mark in it: the loops of the capture study."""

import json
import random
from pathlib import Path

import pytest

from tests.capture import scenarios_list
from tests.capture.runs import record
from uncork.capture.bursts import Bursts, burst_of
from uncork.capture.steps import Action, StepFinder
from uncork.capture.windows import Step

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
NOTHING, CLOSE = Action.NOTHING, Action.CLOSE


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """Run every scenario, all in one process."""
    run = record(
        tmp_path_factory.mktemp("steps") / "run", [str(HERE / "scenarios.py")], cwd=HERE.parent.parent, skip=10**9
    )
    assert run.code == 0, run.err
    return json.loads(run.out)


@pytest.mark.parametrize(("name", "rule"), scenarios_list.RULES.items())
def test_steps_are_exact(seen: dict[str, list], name: str, rule: str) -> None:
    """The recorder counts exactly the steps that the loop made, by the rule that fits it."""
    if name not in seen and name.startswith("compiled"):
        pytest.skip("this torch does not compile on this Python")
    expected, got, by, faults = seen[name]
    assert (got, by, faults) == (expected, rule, [])


@pytest.mark.parametrize(
    ("step_ns", "burst"),
    [
        ([50, 1, 1, 1] * 8, (4, 0)),  # the burst has just ended: the next step begins one
        ([1, 50, 1, 1] * 8, (4, 3)),  # 50, 1, 1 are over
        ([1, 1, 1, 50] * 8, (4, 1)),
        ([3, 1, 1, 1] * 8, (0, 0)),  # three times the median is no other work
        ([50, 1, 1, 1] * 7, (0, 0)),  # 28 steps may be chance
        ([50, *[1] * 15, 10, *[1] * 15] * 4, (16, 0)),  # the same work need not take the same time
        ([4, *[1] * 31] * 4, (0, 0)),  # 4 of 35 would change no answer
        ([50, 1, 1, 1] * 4 + [50, 1, 1, 60] + [50, 1, 1, 1] * 4, (0, 0)),  # 60 is no part of the pattern
        ([1] * 64, (0, 0)),
        ([], (0, 0)),
    ],
)
def test_bursts_are_told_from_even_updates(step_ns: list[int], burst: tuple[int, int]) -> None:
    """Every fourth step takes 50 of 53; what a busy machine takes now and then makes no burst."""
    assert burst_of(step_ns) == burst


def test_bursts_are_looked_for_where_no_profiler_ran() -> None:
    """Steps of a trace are longer than they are; the latest ones count that came after it."""
    after = [(number, "", 0, dur_ns, dur_ns) for number, dur_ns in enumerate([50, 1, 1, 1] * 8)]
    assert Bursts().look([(0, "light", 0, 90, 90), *after]) == (4, 0)
    assert Bursts().look([*after[:16], (0, "light", 0, 90, 90), *after[16:]]) == (0, 0)


def on_busy_machine(work_ns: list[int], seed: int) -> list[Step]:
    """Return steps of so much work each, on a machine that lets it run for 3.6 ms and wait for 14, time and again."""
    rng = random.Random(seed)
    steps, left_ns = [], rng.randint(0, 3_600_000)
    for number, each_ns in enumerate(work_ns):
        cpu_ns = dur_ns = int(each_ns * rng.uniform(0.95, 1.1))
        left_ns -= cpu_ns
        while left_ns < 0:
            left_ns += int(3_600_000 * rng.uniform(0.98, 1.02))
            dur_ns += int(14_000_000 * rng.uniform(0.98, 1.02))
        steps.append((number, "", 0, dur_ns, cpu_ns))
    return steps


def test_a_busy_machine_makes_no_bursts() -> None:
    """Every eighth of even steps of 0.5 ms takes 14.5: a burst by the clock, but no work of the thread's own."""
    plain = [on_busy_machine([500_000] * 64, seed) for seed in range(50)]
    assert sum(burst_of([row[3] for row in steps])[0] > 0 for steps in plain) > 10
    assert {Bursts(lambda: None).look(steps) for steps in plain} == {(0, 0)}


def test_a_burst_is_found_on_a_busy_machine() -> None:
    """Three updates of 0.2 ms after work of 2 ms: seldom plain by the clock, always by the thread's own work."""
    bursts = [on_busy_machine([2_200_000, *[200_000] * 3] * 10, seed) for seed in range(50)]
    assert sum(burst_of([row[3] for row in steps]) == (4, 0) for steps in bursts) < 25
    assert {Bursts(lambda: None).look(steps) for steps in bursts} == {(4, 0)}


@pytest.mark.parametrize(("queued_ns", "found"), [(34, (4, 0)), (35, (0, 0)), (None, (0, 0))])
def test_waits_before_updates_are_told_where_the_thread_had_cores(queued_ns: int | None, found: tuple) -> None:
    """It waits for 40 of 43 before each fourth update; a tenth of all 344 may be waiting for a core."""
    steps = [(number, "", 0, dur_ns, 1) for number, dur_ns in enumerate([1] * 4 + [40, 1, 1, 1] * 8)]
    counts = iter([5, queued_ns and 5 + queued_ns])
    bursts = Bursts(lambda: next(counts))
    assert bursts.look(steps[:4]) == (0, 0)
    assert bursts.look(steps) == found


def test_a_burst_is_one_step() -> None:
    """With one of three updates over, the second and the fifth end a step; a new loop begins with single ones."""
    finder = StepFinder()
    finder.gather(3, 1)
    assert [finder.update(1) for _ in range(6)] == [NOTHING, CLOSE, NOTHING, NOTHING, CLOSE, NOTHING]
    assert finder.seen == 2
    assert finder.mark() is Action.RESTART
    assert finder.burst == 1


def test_a_loader_that_takes_the_loop_over_ends_the_bursts() -> None:
    """Once fetches and updates alternate, each fetch ends a step again."""
    finder = StepFinder()
    assert finder.update(1) is CLOSE
    finder.gather(3, 0)
    assert [step() for step in (finder.fetch, lambda: finder.update(1)) * 2] == [NOTHING, NOTHING, Action.MOVE, NOTHING]
    assert (finder.rule, finder.burst) == ("loader", 1)


def test_batches_fetched_ahead_are_of_the_step_that_gathers_over_them() -> None:
    """Four batches are fetched at once, then trained on; of a validation between two steps every fetch is outside."""
    finder = StepFinder()

    def step() -> list[Action]:
        fetches = [finder.fetch() for _ in range(4)]
        for _ in range(4):
            finder.backward(updated_inside=False)
        assert finder.update(1) is NOTHING
        return fetches

    move = Action.MOVE
    finder.optimizer_built()
    step()
    assert step() == [CLOSE, NOTHING, NOTHING, NOTHING]
    validation = [finder.fetch() for _ in range(6)]
    assert validation == [CLOSE, NOTHING, NOTHING, NOTHING, move, move]
    assert step() == [move] * 4
    assert step() == [CLOSE, NOTHING, NOTHING, NOTHING]


def test_backward_passes_of_one_update_are_taken_back() -> None:
    """A batch that goes through the model sample by sample looked like 16 updates by hand; the optimiser's says no."""
    finder = StepFinder()
    finder.optimizer_built()
    for _ in range(3):
        finder.fetch()
        for _ in range(32):
            finder.backward(updated_inside=False)
        action = finder.update(1)
        assert action is (Action.RESTART if not finder.seen else NOTHING)
    assert (finder.rule, finder.seen, finder.step_is_open) == ("loader", 2, True)
