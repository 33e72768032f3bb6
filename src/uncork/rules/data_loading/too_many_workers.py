"""too-many-workers: more loader workers than the machine has cores."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.busy_machine import BusyMachine
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.measure.worker_counts import WorkerCounts
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge

FREE_SHARE = 0.5
"""With half of the cores idle nobody takes turns for them, however many workers there are: they wait. Starting up, on
one core, is in the samples too."""


@rule()
def too_many_workers(
    counts: Ranks[WorkerCounts],
    ledgers: Ranks[StepLedger],
    codes: Ranks[LoaderCode] | None,
    machines: Ranks[BusyMachine] | None,
    stages: Ranks[LoaderStages] | None,
) -> Cost | None:
    """Return the wait for data of a job whose workers take turns on the cores; the gain is not known beforehand."""
    # Workers that mostly wait for a disk or a network need no core meanwhile.
    waiting = [code.waits for code in codes] if codes else [False] * len(counts)
    if machines and min(one.idle_share for one in machines) >= FREE_SHARE:
        return None
    # What they would use is counted by themselves, whatever else runs on the machine; each process needs a core more.
    wanted = [one.cores_wanted for one in stages or ()]
    if wanted and None not in wanted and sum(one or 0.0 for one in wanted) + len(counts) <= counts[0].cores:
        return None
    crowded = [
        count.workers * len(counts) > count.cores and not waits for count, waits in zip(counts, waiting, strict=True)
    ]
    cost = charge(
        ledgers, [ledger.mean_ns("data_loading") if full else 0 for ledger, full in zip(ledgers, crowded, strict=True)]
    )
    count, ledger = counts[cost.place], ledgers[cost.place]
    if not any(crowded) or (ledger.on_device and not cost.notable):
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=0.6 if cost.notable else 0.4,
        location=Location(rank=cost.rank, op="DataLoader"),
        evidence=(
            Evidence("workers", count.workers * len(counts), "count", count.cores),
            Evidence("loader_wait_share", cost.share, "share", NOTABLE_SHARE),
        ),
        params={
            "workers": count.workers,
            "cores": count.cores,
            "fewer": max(count.cores // len(counts) - 1, 1),
            "ranks": len(counts),
        },
    )
