"""garbage-collection: Python's collector runs inside the steps while nothing else can."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.garbage import Garbage
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

REGION = "Python GC"
"""What traces and the recorder call the runs that Python starts by itself."""
LEAST_SHARE = 0.02
"""Freezing the collector is two lines, worth a smaller share than other changes."""


@rule()
def garbage_collection(garbage: Ranks[Garbage], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of collections that the step waits for."""
    cost = charge(ledgers, [_waited_ns(ledger, one) for ledger, one in zip(ledgers, garbage, strict=True)])
    if cost.share < LEAST_SHARE:
        return None
    one, ledger = garbage[cost.place], ledgers[cost.place]
    watched = "watched" if _is_watched(ledger, one) else "recorded"
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 2, cost.share),
        confidence=sure(ledger, 0.9),
        location=Location(rank=cost.rank, op="gc.collect" if one.called else REGION),
        evidence=(
            Evidence("gc_share", cost.share, "share", LEAST_SHARE),
            Evidence("gc_per_step", one.collections, "count"),
            Evidence("gc_longest", one.longest_ns, "ns"),
        ),
        advice=("no-collect", "freeze") if one.called else ("freeze", "by-hand"),
        params={"longest_ns": one.longest_ns, "of": f"@gc.of.{watched}", "counted": f"@gc.counted.{watched}"},
    )


def _waited_ns(ledger: StepLedger, garbage: Garbage) -> int:
    """Return the time per step that waits for the collector; what a device works meanwhile is not lost."""
    if garbage.share is not None and _is_watched(ledger, garbage):
        return int(garbage.share * ledger.mean_step_ns)
    return ledger.mean_ns("gc") or (garbage.dur_ns if garbage.called else 0)


def _is_watched(ledger: StepLedger, garbage: Garbage) -> bool:
    """Return whether the figure is of all steps that were watched, not only of those in the recording."""
    return garbage.share is not None and not ledger.on_device
