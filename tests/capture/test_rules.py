"""The rules that turn signals into steps, and the plan of the windows, without torch."""

import random

import pytest

from uncork.capture import plan
from uncork.capture.cycle import Cycle
from uncork.capture.options import CaptureOptions
from uncork.capture.plan import Stage
from uncork.capture.steps import Action, StepFinder


def closed(order: str) -> list[int]:
    """Return after which updates of an order of optimisers (one letter each) a step closed."""
    cycle = Cycle()
    return [place for place, key in enumerate(order) if cycle.add(ord(key))]


@pytest.mark.parametrize(
    ("order", "places"),
    [
        ("AAAA", [0, 1, 2, 3]),
        ("ABABAB", [0, 1, 3, 5]),
        ("AAABAAABAAAB", [0, 1, 2, 3, 7, 11]),
        ("ABCABC", [0, 1, 2, 5]),
    ],
)
def test_periods_are_learnt(order: str, places: list[int]) -> None:
    """A step closes at the end of each period; what was cut before all optimisers had appeared is withdrawn later."""
    assert closed(order) == places


def test_withdrawn_steps_are_those_cut_too_early() -> None:
    """When the generator appears after three critic updates, those three were one step."""
    cycle = Cycle()
    for key in (1, 1, 1):
        cycle.add(key)
    cycle.add(2)
    assert cycle.withdrawn == 3


def test_irregular_orders_are_paced_by_the_rarer_optimiser() -> None:
    """Without a period, the optimiser with fewer updates closes the steps: once per three updates here, on the mean."""
    chance = random.Random(4)  # a fixed order, no secret
    order = "".join(chance.choice("AAB") for _ in range(600))
    late = [place for place in closed(order) if place > 300]
    assert all(order[place] == "B" for place in late)
    assert len(late) == order[301:].count("B")


@pytest.mark.parametrize("first", [5, 20, 100])
def test_the_optimiser_of_a_phase_that_is_over_paces_nothing(first: int) -> None:
    """After steps of one optimiser come thirty of another; at most a dozen pass until the first counts as gone.

    Its period is 1, so it is gone 3 x 1 + 8 updates after its last one.
    """
    assert sum(place >= first for place in closed("A" * first + "B" * 30)) >= 30 - 12


def test_a_loader_that_stops_driving_hands_the_loop_over() -> None:
    """One fetch and then only updates: after eight the updates themselves are the steps, none is lost."""
    finder = StepFinder()
    finder.optimizer_built()
    finder.fetch()
    actions = [finder.update(1) for _ in range(20)]
    assert finder.rule == "optimizer"
    assert finder.seen == 20
    assert actions.count(Action.CLOSE) == 13


def test_a_validation_begins_anew_and_counts_nothing() -> None:
    """Fetches without an update or a backward between them move the step's begin and close none."""
    finder = StepFinder()
    finder.optimizer_built()
    for _ in range(3):
        finder.fetch()
        finder.backward(updated_inside=False)
        finder.update(1)
    assert finder.fetch() is Action.CLOSE
    assert [finder.fetch() for _ in range(4)] == [Action.MOVE] * 4
    assert finder.seen == 3


def test_marks_silence_every_other_rule() -> None:
    """The first mark begins anew, each later one closes a step."""
    finder = StepFinder()
    finder.optimizer_built()
    finder.update(1)
    assert [finder.mark() for _ in range(3)] == [Action.RESTART, Action.CLOSE, Action.CLOSE]
    assert (finder.seen, finder.rule) == (2, "mark")


def test_windows_shrink_with_the_operators_of_a_step() -> None:
    """A step of 30,000 events allows three in a deep window of 100,000; one of a million still gets its one step."""
    deep = Stage("deep", 10, 2, 0)
    assert plan.fit(deep, 30_000).most == 3
    assert plan.fit(deep, 1_000_000).most == 1
    assert plan.fit(deep, 0).most == 10
    assert plan.fit(Stage("baseline", 20, 3, 0), 1_000_000).most == 20


def test_plan_follows_the_options() -> None:
    """Left-out windows are left out, the warm-up is as long as asked, and ranks count steps only."""
    options = CaptureOptions(skip=7, functions=False, deep=False)
    stages = plan.stages(options, loader_depth=4, aligned=True)
    assert {stage.name for stage in stages} == {"warmup", "baseline", "light", "settle", "baseline2"}
    assert stages[0].most == 7
    assert all(stage.most == stage.least for stage in stages)
    assert next(stage for stage in stages if stage.name == "settle").most == 5
