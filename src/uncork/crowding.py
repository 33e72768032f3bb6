"""Crowding: what the quality gate says of a thread that was kept from its work, by whom and for how long."""

from collections.abc import Iterator, Sequence

from uncork.findings import Quality
from uncork.measure import Measured, present
from uncork.measure.busy_machine import BusyMachine
from uncork.measure.core_waits import CoreWaits

OTHERS_SHARE = 0.25
CROWDED_IDLE_SHARE = 0.1
"""Other programs on a quarter of the cores, and hardly any core idle: the program waited for its turn."""
WAITED_SHARE = 0.05
"""Less waiting for a core is less than what the loss of a twentieth of the step would be."""
QUOTA_STOPS_SHARE = 0.05
OFF_CORE_SHARE = 0.2
"""Operators of one thread that neither run nor stand in a queue for less than this are within what the two clocks and
the profiler's own time can be apart (own programs, 2026: up to 0.02)."""


def crowding(measured: Sequence[Measured]) -> Iterator[Quality]:
    """Yield who kept the program from the cores, over all ranks the worst.

    Args:
        measured: The measurements of each rank.
    """
    waits = [one for one in present(measured, CoreWaits) if one.step_ns]
    busy = max(present(measured, BusyMachine), key=lambda one: one.others_share, default=None)
    # Of a program that may use some of the cores only, others can be anywhere else without being in its way.
    apart = waits and all(one.other_cores <= OTHERS_SHARE * one.cores for one in waits)
    if busy and busy.others_share > OTHERS_SHARE and busy.idle_share < CROWDED_IDLE_SHARE and not apart:
        yield Quality("machine-busy", "warning", busy.others_share, {"others_share": busy.others_share})
    if waits:
        yield from _waited(max(waits, key=lambda one: one.waited_ns / one.step_ns))
        yield from _off_core(max(waits, key=lambda one: one.off_core_ns / one.step_ns))


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
