"""cpu-threads-undersubscribed: operators on the host use few of the cores that the program may use."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.step_ledger import StepLedger
from uncork.measure.threads import Threads
from uncork.rules.rule import rule
from uncork.rules.worth import charge_causes, sure

LEAST_COMPUTE_SHARE = 0.3
"""Operators on the host must take this share for their threads to matter."""
MOST_USED_SHARE = 0.5
"""Half of the cores: with hyper-threading that is one thread per physical core, which is what PyTorch itself takes."""
SCALES_SHARE = 0.5
"""Half of the operators' time is taken to shrink with more threads; the rest is too small to split (Amdahl)."""


@rule()
def cpu_threads_undersubscribed(threads: Ranks[Threads], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return what idle cores could give back where operators run on the host."""
    on_host = () if ledgers[0].on_device else ("bandwidth",)
    cost = charge_causes(ledgers, "compute", "memop", "cpu_heavy", *on_host)
    one, ledger = threads[cost.place], ledgers[cost.place]
    used = (one.threads * max(one.ranks, len(threads)) + one.workers) / one.cores
    if cost.share < LEAST_COMPUTE_SHARE or used >= MOST_USED_SHARE:
        return None
    more = max(one.threads, (one.cores // 2 or 1) // max(one.ranks, len(threads)))
    if more == one.threads:
        return None
    won = cost.share * (1 - one.threads / more)
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, won * SCALES_SHARE if one.threads > 1 else won),
        confidence=sure(ledger, 0.7),
        location=Location(rank=cost.rank),
        evidence=(
            Evidence("host_compute_share", cost.share, "share", LEAST_COMPUTE_SHARE),
            Evidence("threads_per_core", used, "ratio", MOST_USED_SHARE, "<"),
        ),
        params={
            "threads": one.threads,
            "cores": one.cores,
            "more": more,
            "variable": one.variable or "@unknown.not_set",
        },
    )
