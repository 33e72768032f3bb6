"""cpu-threads-oversubscribed: more threads compute than there are cores, so they take turns."""

import math

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.measure.threads import Threads
from uncork.rules.rule import rule
from uncork.rules.worth import charge_causes, sure

LEAST_COMPUTE_SHARE = 0.3
"""Operators on the host must take this share for their threads to matter."""
MOST_PER_CORE = 1.25
"""A little over one thread per core does no harm; workers sleep part of the time."""
WON_SHARES = (0.05, 0.5)
"""Threads that wait at each operator's end for one that does not run: measured from little to half (OpenMP spins)."""


@rule()
def cpu_threads_oversubscribed(
    threads: Ranks[Threads], ledgers: Ranks[StepLedger], stages: Ranks[LoaderStages] | None
) -> Cost | None:
    """Return the time of operators on the host where their threads exceed the cores."""
    on_host = () if ledgers[0].on_device else ("bandwidth",)
    cost = charge_causes(ledgers, "compute", "memop", "cpu_heavy", "optimizer", *on_host)
    one, ledger = threads[cost.place], ledgers[cost.place]
    # Workers that idle or sleep want no core; where that is not known each counts as one.
    wanted = stages[cost.place].cores_wanted if stages else None
    busy = one.workers if wanted is None else min(wanted, one.workers)
    workers, ranks = math.ceil(busy), max(one.ranks, len(threads))
    per_core = (one.threads * ranks + busy) / one.cores
    fits = max(1, (one.cores - workers) // ranks)
    if cost.share < LEAST_COMPUTE_SHARE or per_core <= MOST_PER_CORE or one.threads <= fits:
        return None  # where a process has no thread too many, workers or ranks are: those have rules of their own
    return Cost(
        ns_per_step=0,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * min(WON_SHARES[1], 1 - 1 / per_core)),
        confidence=sure(ledger, 0.7),
        location=Location(rank=cost.rank),
        evidence=(
            Evidence("host_compute_share", cost.share, "share", LEAST_COMPUTE_SHARE),
            Evidence("threads_per_core", per_core, "ratio", MOST_PER_CORE),
        ),
        params={"threads": one.threads * ranks + workers, "cores": one.cores, "fits": fits, "workers": workers},
    )
