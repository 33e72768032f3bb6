"""unpinned: batches go to the device from memory that the loader did not pin."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.copies import Copies
from uncork.measure.loader import LoaderWait
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.02
"""One argument of the loader is worth a smaller share than other changes."""
PINNED_SPEEDUP = 2.0
"""Pinned copies reach about twice the bandwidth of pageable ones (M. Harris, "How to Optimize Data Transfers")."""


@rule(hidden_by=("pageable-copy",))
def unpinned(
    copies: Ranks[Copies], waits: Ranks[LoaderWait], ledgers: Ranks[StepLedger], machines: Ranks[Machine]
) -> Cost | None:
    """Return what copying unpinned batches costs; where copies tell their memory themselves, pageable-copy speaks."""
    values = [
        _unpinned_ns(copy, machine) if wait.calls else 0
        for copy, wait, machine in zip(copies, waits, machines, strict=True)
    ]
    cost = charge(ledgers, values)
    if cost.share < LEAST_SHARE:
        return None
    won = cost.share * (1 - 1 / PINNED_SPEEDUP)
    copy = copies[cost.place]
    size = copy.total("bytes", direction="HtoD")
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(won / 2, cost.share),
        confidence=sure(ledgers[cost.place], 0.75),
        location=Location(rank=cost.rank, op="DataLoader"),
        evidence=(Evidence("copy_share", cost.share, "share", LEAST_SHARE), Evidence("copied", size, "bytes")),
        params={"copied_bytes": size},
    )


def _unpinned_ns(copies: Copies, machine: Machine) -> int:
    """Return the exposed time of copies to the device that are pageable, or unmarked with a loader known not to pin."""
    marked = copies.total("exposed_ns", direction="HtoD", memory="pageable")
    unmarked = copies.total("exposed_ns", direction="HtoD", memory="unknown")
    return marked + (unmarked if machine.pin_memory is False else 0)
