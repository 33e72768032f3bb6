"""HostMemory and its rule: made-up series of resident memory that leak, saturate, saw and jump."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.rule_outcomes import outcome
from uncork.measure import Rank
from uncork.measure.host_memory import FloatArray, HostMemory
from uncork.recording import Recording, RunInfo, SampleTable, Window
from uncork.testing import sketch

MIB = 1 << 20
SECOND_NS = 1_000_000_000
STEPS = "steps 2 x 10ms\n  main 0ms..9ms aten::mm"
RAMP = np.arange(100) / 99
"""The time of a hundred samples, 0 to 1."""


def recording(mib: FloatArray | list[float]) -> Recording:
    """Return a recording with samples of resident memory in MiB, a second apart."""
    (found,) = sketch(STEPS)
    when = np.arange(len(mib)) * SECOND_NS
    return replace(found, samples=SampleTable({"process_rss_bytes": (when, np.asarray(mib, float) * MIB)}))


def test_growth_is_measured_after_settling():
    """20 samples a second apart, 50 MiB more each: 13 seconds of it after the first 6, a half of it in either half.

    Of 14 samples, fifths begin at 0, 3, 6, 9, 12: 6 of 12 steps are gained before the middle, 3 between two.
    """
    found = HostMemory.of(Rank(recording([1000 + 50 * second for second in range(20)])))
    assert (found.growth_bytes, found.span_ns) == (pytest.approx(13 * 50 * MIB), 13 * SECOND_NS)
    assert (found.half_share, found.part_share) == (0.5, 0.25)


LEAKS: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "evenly": lambda t, _: 500 * t,
    "in bursts of work": lambda t, _: 500 * np.interp(t, [0, 0.5, 0.6, 0.8, 1], [0, 0.5, 0.52, 0.9, 1]),
    "three times as fast later": lambda t, _: 500 * np.interp(t, [0, 0.65, 1], [0, 0.4, 1]),
    "between collections of garbage": lambda t, _: 500 * t + 200 * ((t * 9) % 1),
    "by arenas of 64 MiB": lambda t, _: 64 * np.floor(500 * t / 64),
    "under noise": lambda t, chance: 500 * t + chance.normal(0, 40, len(t)),
    "with a batch of another size now and then": lambda t, chance: 500 * t + 300 * (chance.random(len(t)) < 0.1),
}
OTHERS: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "nothing": lambda t, _: 0 * t,
    "noise": lambda t, chance: chance.normal(0, 200, len(t)),
    "a saw without growth": lambda t, _: 500 * ((t * 7) % 1),
    "a slow saw": lambda t, _: 500 * ((t * 2.5) % 1),
    "a cache that fills": lambda t, _: 500 * (1 - np.exp(-6 * t)),
    "a cache that is full halfway": lambda t, _: 500 * np.minimum(t / 0.5, 1),
    "one jump": lambda t, _: 500.0 * (t > 0.65),
    "one jump near the end": lambda t, _: 500.0 * (t > 0.9),
    "a shrinking one": lambda t, _: 500 * (1 - t),
    "a walk at random": lambda t, chance: 10 * chance.normal(0, 1, len(t)).cumsum() * (t < 0.7),
    "a single peak": lambda t, _: 500.0 * (abs(t - 0.8) < 0.05),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_leaks_is_found(name: str):
    """500 MiB on top of 1000, whatever its course: five times out of five."""
    for seed in range(5):
        made = 1000 + LEAKS[name](RAMP, np.random.default_rng(seed))
        (finding,) = outcome("host-memory-growth", [recording(made)])
        assert finding.params["growth_bytes"] == pytest.approx(0.7 * 500 * MIB, rel=0.5)


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_go_on_growing_is_no_leak(name: str):
    """The same amount that comes and goes, comes once, or comes to an end: none out of five."""
    for seed in range(5):
        made = 1000 + OTHERS[name](RAMP, np.random.default_rng(seed))
        assert outcome("host-memory-growth", [recording(made)]) == []


def test_what_follows_the_last_step_is_no_part():
    """Sixty seconds of steps leak 300 MiB, forty of saving nothing: the leak is of the steps, 7.14 MiB a second."""
    made = recording(1000 + np.minimum(np.arange(100), 60) * 5.0)
    run = RunInfo(windows=(Window("warmup", (SECOND_NS,), 0),), steps_ended_ns=60 * SECOND_NS)
    within = HostMemory.of(Rank(replace(made, run=run)))
    assert (within.growth_bytes, within.span_ns) == (pytest.approx(42 * 5 * MIB), 42 * SECOND_NS)
    assert within.half_share == pytest.approx(0.5, abs=0.03)
    whole = HostMemory.of(Rank(replace(made, run=replace(run, steps_ended_ns=None))))
    assert whole.half_share < 0.25
