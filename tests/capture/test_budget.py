"""No step can make a window eat memory: what is too large is cut, and the cut says so."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.runs import plain, record
from uncork.capture import budget, plan
from uncork.capture.budget import Budget, Room
from uncork.capture.options import CaptureOptions
from uncork.capture.plan import Stage
from uncork.capture.schedule import Schedule
from uncork.capture.windows import Window

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
HUGE = str(HERE / "huge.py")
WINDOW_BYTES = 1_000_000_000
"""What a window may cost at most, whatever the program does (docs/overhead.md)."""


@pytest.fixture(scope="module")
def little_bytes() -> int:
    """Return the peak memory of a program with small steps alone, without the recorder; only `graph` takes more."""
    return peak_bytes(plain([HUGE, "little"], cwd=HERE).stdout)


@pytest.mark.parametrize(
    ("way", "note"),
    [
        ("silent", "window-cut"),
        ("silent_later", "window-cut"),
        ("graph", "window-cut"),
        ("backward", "window-cut"),
        ("calls", "stacks-too-many"),
    ],
)
def test_memory_is_bounded(tmp_path: Path, little_bytes: int, way: str, note: str) -> None:
    """1.5 million operators in one step, 2.5 GB if kept, cost less than 1 GB in the light window or the deep one."""
    run = record(tmp_path / "run", [HUGE, way], cwd=HERE)
    assert run.code == 0, run.err
    assert run.err == ""
    told = run.told(0)
    assert note in told["notes"], told
    assert told["faults"] == []
    assert peak_bytes(run.out) - little_bytes < WINDOW_BYTES


def peak_bytes(out: str) -> int:
    """Return the peak memory that a program printed."""
    found = re.search(r"peak (\d+)", out)
    assert found is not None, out
    return int(found[1]) * 1024


class Torch:
    """Has as many autograd nodes as a test says."""

    nodes = 0

    class _C:
        class _autograd:  # noqa: N801
            @staticmethod
            def _get_sequence_nr() -> int:
                return Torch.nodes


@pytest.mark.parametrize(
    ("after_ns", "gained", "full"),
    [
        (99_000_000, 10**9, False),  # so little time holds at most 99,000 events
        (101_000_000, 19_000_000, False),  # so little memory holds at most 95,000
        (101_000_000, 21_000_000, True),
        (40_000_000_000, 0, True),  # a step that does not end: 20 s and ten times the longest step of 1 s are over
        (29_000_000_000, 0, False),
    ],
)
def test_full_by_clock_and_memory(monkeypatch: pytest.MonkeyPatch, after_ns: int, gained: int, full: bool) -> None:
    """A window of 100,000 events of 200 B at one per microsecond is full after 0.1 s and 20 MB, not after either."""
    now = {"ns": 0, "bytes": 5}
    monkeypatch.setattr(budget.time, "perf_counter_ns", lambda: now["ns"])
    monkeypatch.setattr(budget, "_memory_bytes", lambda: (now["bytes"], 1))
    watched = Budget(Torch, Room(100_000, 200, 1e-3), longest_ns=1_000_000_000)
    now["ns"], now["bytes"] = after_ns, 5 + gained
    assert watched.look() is full


def test_full_by_calls_and_nodes() -> None:
    """64 calls and 40 nodes are taken for 64 x 15 + 40 x 12 = 1440 events; they are counted at each 64th call."""
    watched = Budget(Torch, Room(1400, 200))
    Torch.nodes += 40
    assert [watched.called() for _ in range(64)] == [False] * 63 + [True]
    assert watched.guess() == 1440


def test_a_window_cut_for_nothing_comes_once_more() -> None:
    """500 events in 0.1 s are few: the window begins again, two steps long, and is watched at twice that rate."""
    schedule = Schedule(CaptureOptions())
    window = Window(Stage("light", 3, 1, 0), 8, 0, facts={"cut": 1, "events": 500})
    assert schedule.repeats(window, 100_000_000)
    schedule.begun = True
    assert schedule.take_next(8) == Stage("light", 2, 1, 0)
    assert schedule.room("light") == Room(plan.EVENTS_MOST_LIGHT, plan.COLLECTED_LIGHT, 2 * 500 / 100_000_000)
    assert not schedule.repeats(window, 100_000_000)


def test_a_window_cut_after_one_step_comes_once_more() -> None:
    """One whole step shows nothing that repeats; two do, and ranks would no longer begin theirs at the same step."""
    facts = {"events": 500}
    one, two = (Window(Stage("light", 3, 1, 0), 8, 0, step_ns=[5] * steps, facts=facts) for steps in (1, 2))
    assert Schedule(CaptureOptions()).repeats(one, 100_000_000)
    assert not Schedule(CaptureOptions()).repeats(two, 100_000_000)
    of_two_ranks = Schedule(CaptureOptions())
    of_two_ranks._world = 2
    assert not of_two_ranks.repeats(one, 100_000_000)


@pytest.mark.parametrize(("inside", "steps", "rest"), [(True, 1, 1), (False, 1, 2), (True, 2, 0), (False, 2, 1)])
def test_ranks_wait_for_each_other_after_a_cut(inside: bool, steps: int, rest: int) -> None:
    """Of three steps one rank recorded fewer: the rest of them are nobody's, and the next window begins after them."""
    schedule = Schedule(CaptureOptions(skip=0))
    schedule._world = 2
    window = Window(Stage("light", 3, 3, 0), 8, 0, step_ns=[5] * steps, facts={"events": 500})
    assert not schedule.lacks(window, 100_000_000, inside=inside)
    assert [(one.name, one.most, one.least) for one in schedule._ahead] == [("settle", rest, rest)] * bool(rest)


@pytest.mark.parametrize(
    ("steps", "events", "lacks"), [(2, 500, False), (2, 100_000, True), (0, 100_000, True), (0, 500, False)]
)
def test_a_cut_is_told_where_something_is_missing(steps: int, events: int, lacks: bool) -> None:
    """Two whole steps with few events lack nothing, and a window without any comes once more."""
    window = Window(Stage("light", 3, 1, 0), 8, 0, step_ns=[5] * steps, facts={"events": events})
    assert Schedule(CaptureOptions()).lacks(window, 100_000_000, inside=True) is lacks


@pytest.mark.parametrize(
    ("events", "steps", "over"), [(31_000, 1, False), (32_000, 1, True), (7_000, 2, False), (8_000, 2, True)]
)
def test_a_first_window_with_many_events_ends_early(events: int, steps: int, over: bool) -> None:
    """After two steps 8,000 events are enough; one step alone has to have four times as many."""
    watch = SimpleNamespace(budget=SimpleNamespace(guess=lambda: events))
    window = Window(Stage("light", 3, 1, 10**12), 8, 0, step_ns=[5] * steps)
    assert Schedule(CaptureOptions()).is_over(window, watch) is over  # type: ignore[arg-type]


def test_a_window_that_was_full_does_not_come_again() -> None:
    """A third of what may be held is no cut for nothing."""
    window = Window(Stage("light", 3, 1, 0), 8, 0, facts={"cut": 1, "events": plan.EVENTS_MOST_LIGHT // 6})
    assert not Schedule(CaptureOptions()).repeats(window, 100_000_000)
