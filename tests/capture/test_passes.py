"""Passes: when a later one begins, and what only it holds."""

import gzip
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.runs import record
from uncork.capture import plan
from uncork.capture.options import CaptureOptions
from uncork.capture.plan import Stage
from uncork.capture.schedule import Schedule
from uncork.capture.windows import Window

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
PROGRAMS = str(HERE / "programs.py")


@pytest.mark.parametrize(("step_s", "bears"), [(0.1, False), (10, True)])
def test_long_steps_get_a_second_pass_sooner(monkeypatch: pytest.MonkeyPatch, step_s: float, bears: bool) -> None:
    """Nine steps of 10 s are a minute and a half, by which caches have settled; nine of 0.1 s are not."""
    schedule = Schedule(CaptureOptions())
    schedule.begin(SimpleNamespace(), {})
    while (stage := schedule.take_next(9)) is not None:
        assert stage.number == 1
        assert stage.name != "light" or stage.least == 2  # one step shows nothing that repeats
    now_ns = time.perf_counter_ns() + int(9 * step_s * 1e9)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now_ns)
    assert (schedule.take_next(9) is not None) is bears


@pytest.mark.parametrize(
    ("step_ns", "events", "passes"),
    [(2_000_000, 300, 3), (60_000_000, 300, 2), (2_000_000, 6_000, 2)],
)
def test_only_quick_steps_get_a_third_pass(step_ns: int, events: int, passes: int) -> None:
    """Steps of 60 ms, or of 6000 events, are complete after the second pass; ranks are too, whatever their steps."""
    schedule = Schedule(CaptureOptions(then_exit=True))
    schedule.begin(SimpleNamespace(), {})
    light = Window(Stage("light", 10, 3, 0, 2), 1, 0, step_ns=[step_ns] * 10, facts={"events": 10 * events})
    schedule.keep(light)
    given = []
    while (stage := schedule.take_next(1000)) is not None:
        given.append(stage.number)
    assert (max(given), schedule.is_done()) == (passes, True)
    assert max(stage.number for stage in plan.stages(CaptureOptions(), loader_depth=0, aligned=True)) == 2


@pytest.mark.parametrize(("loop_s", "begins"), [(39, False), (41, True)])
def test_windows_of_slow_steps_cost_what_they_last(monkeypatch, loop_s: int, *, begins: bool) -> None:
    """Of steps of 2 s a light window of 4 s takes three (its least), a deep one one: 0.6 s each, 3 % of 40 s."""
    clock_ns = [0]
    monkeypatch.setattr("uncork.capture.schedule.time", SimpleNamespace(perf_counter_ns=lambda: clock_ns[0]))
    schedule = Schedule(CaptureOptions())
    schedule.begin(SimpleNamespace(), {})
    while schedule.take_next(0) is not None:
        pass
    for name, stop_ns in (("light", 200_000_000), ("functions", 0), ("deep", 600_000_000)):
        facts = {"events": 10_000, "stop_ns": stop_ns}
        schedule.keep(Window(Stage(name, 1, 1, 0), 1, 0, step_ns=[2_000_000_000], facts=facts))
    clock_ns[0] = loop_s * 1_000_000_000
    assert (schedule.take_next(40) is not None) == begins


@pytest.mark.parametrize(
    ("events", "step_ns", "number", "is_put_off"),
    [(5_000, 2_400_000, 1, True), (5_000, 2_400_000, 2, False), (5_000, 5_100_000, 1, False), (2_900, 9_000, 1, False)],
)
def test_shapes_of_tiny_operators_come_later(events: int, step_ns: int, number: int, *, is_put_off: bool) -> None:
    """Two events a microsecond, 5000 a step: not in the first pass. A longer step, or a small one, bears them."""
    schedule = Schedule(CaptureOptions())
    schedule.keep(Window(Stage("baseline", 4, 2, 0), 1, 0, step_ns=[step_ns] * 4))
    schedule.keep(Window(Stage("light", 2, 2, 0), 5, 0, step_ns=[2 * step_ns] * 2, facts={"events": 2 * events}))
    assert schedule.lacking(Stage("deep", 1, 1, 0, number)) == ["shapes-put-off"] * is_put_off
    assert schedule.lacking(Stage("light", 1, 1, 0, number)) == []
    asked_not = Schedule(CaptureOptions(shapes=False))
    asked_not.windows = schedule.windows
    assert asked_not.lacking(Stage("deep", 1, 1, 0, number)) == []


@pytest.mark.parametrize(("steps", "then_exit"), [(30, False), (120, True)])
def test_a_later_pass_has_the_shapes(tmp_path: Path, steps: int, *, then_exit: bool) -> None:
    """What ends after the first pass has none and says so; a second one has those of all operators."""
    run = record(tmp_path / "run", [PROGRAMS, "all_tiny", str(steps)], cwd=HERE, then_exit=then_exit)
    assert "shapes-put-off" in run.told(0)["notes"]
    deep = next(one for one in run.told(0)["windows"] if one["name"] == "deep")
    assert (deep["pass"] > 1) is then_exit
    with gzip.open(run.folder / "rank0" / "deep.trace.json.gz") as file:
        assert (b"Input Dims" in file.read()) is then_exit


@pytest.mark.parametrize(
    ("seen", "step_ns", "world", "held", "until"),
    [
        (41, 2_000_000, 1, None, 48),
        (48, 2_000_000, 1, None, 56),
        (41, 60_000_000, 1, None, 0),
        (41, 2_000_000, 2, None, 0),
        (41, 2_000_000, 1, 30, 0),
    ],
)
def test_nobody_asks_for_a_later_pass_at_each_step(seen, step_ns, world, held, until) -> None:
    """Every eighth of quick steps is enough; ranks begin at one step, and a region that closes must not be missed."""
    schedule = Schedule(CaptureOptions())
    schedule.begin(SimpleNamespace(), {})
    assert schedule.rests_until(seen) == 0
    while schedule.take_next(0) is not None:
        pass
    schedule.keep(Window(Stage("baseline", 4, 2, 0), 1, 0, step_ns=[step_ns] * 4))
    schedule._world, schedule.held_since = world, held
    assert schedule.rests_until(seen) == until
