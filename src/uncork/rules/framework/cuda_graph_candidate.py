"""cuda-graph-candidate: every step launches the same work, nothing reads back in between, and launching is slow."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.dispatch import Dispatch
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.measure.syncs import Syncs
from uncork.rules.pace import GRAPHS, pace_ns
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.1
"""Capturing a step is work; less is not worth it."""
WON_SHARE = 0.9
"""A replay is one launch; what lies outside the captured part remains."""


@rule()
def cuda_graph_candidate(
    counts: Ranks[Dispatch], syncs: Ranks[Syncs], ledgers: Ranks[StepLedger], machines: Ranks[Machine]
) -> Cost | None:
    """Return the head-room of replaying the step as a graph; the time is charged to launch-bound."""
    fits = [
        machine.device in GRAPHS
        and count.steady
        and not count.graph_launches
        and _same_launches(count)
        and not any(site.calls >= 1 for site in sync.sites)
        for count, sync, machine in zip(counts, syncs, machines, strict=True)
    ]
    values = [pace_ns(ledger) if ok and ledger.on_device else 0 for ledger, ok in zip(ledgers, fits, strict=True)]
    cost = charge(ledgers, values)
    if cost.share < LEAST_SHARE:
        return None
    count = counts[cost.place]
    launches = float(count.launches.mean())
    return Cost(
        ns_per_step=0,
        gain=Gain(cost.share / 3, cost.share * WON_SHARE),
        confidence=sure(ledgers[cost.place], 0.7),
        location=Location(rank=cost.rank),
        evidence=(
            Evidence("dispatch_idle_share", cost.share, "share", LEAST_SHARE),
            Evidence("launches_per_step", launches, "count"),
            Evidence("graph_launches", count.graph_launches, "count", 0, "="),
        ),
        params={"launches": round(launches), "idle_share": cost.share},
    )


def _same_launches(count: Dispatch) -> bool:
    """Return whether all steps but those cut by the recording's ends launch the same number of kernels."""
    inner = count.launches[1:-1] if len(count.launches) > 3 else count.launches
    return bool(len(inner) and inner.min() == inner.max() > 0)
