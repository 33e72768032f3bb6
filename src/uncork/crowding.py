"""Crowding: what the quality gate says of a thread that was kept from its work, and of those that worked beside it."""

from collections.abc import Iterator, Sequence

from uncork.findings import Quality
from uncork.measure import Measured, present
from uncork.measure.busy_machine import BusyMachine
from uncork.measure.core_waits import CoreWaits
from uncork.measure.facts import Facts
from uncork.quantiles import median

OTHERS_SHARE = 0.25
CROWDED_IDLE_SHARE = 0.1
"""Other programs on a quarter of the cores, and hardly any core idle: the program waited for its turn."""
BESIDE_SHARE = 0.1
"""As many steps on other threads as this part of the recorded ones' number are no side matter."""
WAITED_SHARE = 0.05
"""Less waiting for a core is less than what the loss of a twentieth of the step would be."""
QUOTA_STOPS_SHARE = 0.05
OFF_CORE_SHARE = 0.2
"""Operators of one thread that neither run nor stand in a queue for less than this are within what the two clocks and
the profiler's own time can be apart (own programs, 2026: up to 0.02)."""
UNLIKE_RATIO = 1.5
ENOUGH_OTHERS = 20
"""Steps that many times as long as the recorded ones, where there are enough of them, hold something else besides …"""
SAME_WORK_RATIO = 1.2
"""… unless they ran no longer than this: under the profiler a step runs longer, not shorter."""


def crowding(measured: Sequence[Measured]) -> Iterator[Quality]:
    """Yield who kept the program from the cores, over all ranks the worst.

    Args:
        measured: The measurements of each rank.
    """
    for facts in present(measured, Facts):
        yield from _same_work(facts)
    yield from _beside(present(measured, Facts))
    waits = [one for one in present(measured, CoreWaits) if one.step_ns]
    busy = max(present(measured, BusyMachine), key=lambda one: one.others_share, default=None)
    # Of a program that may use some of the cores only, others can be anywhere else without being in its way.
    apart = waits and all(one.other_cores <= OTHERS_SHARE * one.cores for one in waits)
    if busy and busy.others_share > OTHERS_SHARE and busy.idle_share < CROWDED_IDLE_SHARE and not apart:
        yield Quality("machine-busy", "warning", busy.others_share, {"others_share": busy.others_share})
    if waits:
        yield from _waited(max(waits, key=lambda one: one.waited_ns / one.step_ns))
        yield from _off_core(max(waits, key=lambda one: one.off_core_ns / one.step_ns))


def _beside(ranks: Sequence[Facts]) -> Iterator[Quality]:
    """Yield that the model ran on other threads too, of the rank where most did; a tenth of the steps is worth asking.

    The counts come from a file that anyone may have written.
    """
    keys, told = ("updates", "forwards", "others"), []
    for run in (one.run for one in ranks if one.run):
        counts = [one if isinstance(one := run.threads.get(key), int) else 0 for key in keys]
        told += [(counts, run.steps_seen)] if min(counts) >= 0 < max(counts[:2]) else []
    if not told:
        return
    (updates, forwards, others), steps = max(told)
    severity = "warning" if max(updates, forwards) > BESIDE_SHARE * steps else "info"
    params = {"others": others, "updates": updates, "forwards": forwards, "steps": steps}
    yield Quality("other-threads", severity, None, params)


def _same_work(facts: Facts) -> Iterator[Quality]:
    """Yield that steps outside all windows did what the recorded ones did, and waited longer."""
    windows = {one.name: one for one in facts.run.windows} if facts.run else {}
    light, others = windows.get("light"), windows.get("unwatched")
    if light is None or light.cores is None or others is None or len(others.cpu_ns) < ENOUGH_OTHERS:
        return
    if not light.step_ns:  # by the clock, before the first step
        return
    others_ns, recorded_ns, cpu_ns = (int(median(one)) for one in (others.step_ns, light.step_ns, others.cpu_ns))
    ran_ns = recorded_ns * light.cores.thread_ns / light.cores.span_ns
    if others_ns > UNLIKE_RATIO * recorded_ns > 0 and cpu_ns <= SAME_WORK_RATIO * ran_ns:
        params = {"others_ns": others_ns, "recorded_ns": recorded_ns, "cpu_ns": cpu_ns}
        yield Quality("others-waited", "info", None, params)


def _waited(one: CoreWaits) -> Iterator[Quality]:
    """Yield how long the steps' thread stood in the queue for a core, and behind whom."""
    step = {"step_ns": one.step_ns}
    share = one.waited_ns / one.step_ns
    if one.throttled and (one.queued_ns or 0) / one.step_ns > QUOTA_STOPS_SHARE:
        queued_ns = one.queued_ns or 0
        yield Quality("cpu-quota", "warning", queued_ns / one.step_ns, {"queued_ns": queued_ns, **step})
    elif share > WAITED_SHARE:
        others = one.by_others_ns / one.waited_ns
        by = {"workers_share": one.workers_share, "own_share": 1 - one.workers_share - others, "others_share": others}
        severity = "warning" if one.by_others_share > WAITED_SHARE else "info"
        yield Quality("waited-for-core", severity, share, {"waited_ns": one.waited_ns, **by, **step})


def _off_core(one: CoreWaits) -> Iterator[Quality]:
    """Yield that operators of one thread were long without running, and without a queue that explains it."""
    share = one.off_core_ns / one.step_ns
    if share > OFF_CORE_SHARE:
        name = "off-core" if one.queued_ns is None else "slept-in-operators"
        yield Quality(name, "warning", share, {"off_core_ns": one.off_core_ns, "step_ns": one.step_ns})
