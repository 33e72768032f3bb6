"""The steps of a program are found without a mark in it: the loops of the capture study."""

import json
from pathlib import Path

import pytest

from tests.capture import scenarios_list
from tests.capture.runs import record
from uncork.capture.bursts import burst_of, unobserved
from uncork.capture.steps import Action, StepFinder

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
    steps = [(1, "baseline", 0, 7), (2, "light", 0, 90), (3, "settle", 0, 8), (4, "", 0, 9)]
    assert unobserved(steps) == [8, 9]


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
