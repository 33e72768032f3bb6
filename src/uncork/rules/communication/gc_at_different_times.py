"""gc-at-different-times: ranks collect garbage in different steps, so each collection is waited for by all."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.garbage import Garbage
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.01


@rule()
def gc_at_different_times(
    garbage: Ranks[Garbage], collectives: Ranks[Collectives], ledger: Ranks[StepLedger]
) -> Cost | None:
    """Return what the longest collection of each step costs beyond the ranks' mean."""
    if len(collectives) < 2:
        raise MissingEvidence("ranks")
    if len({one.ns.shape[1] for one in ledger}) > 1 or ledger[0].ns.shape[1] < 2:
        raise MissingEvidence("steps")
    times = np.array([one.ns[one.causes.index("gc")] for one in ledger if "gc" in one.causes], np.float64)
    step_ns = float(np.mean([one.mean_step_ns for one in ledger]))
    if len(times) < 2 or not step_ns:
        return None
    cost_ns = float((times.max(axis=0) - times.mean(axis=0)).mean())
    if cost_ns < LEAST_SHARE * step_ns:
        return None
    return Cost(
        ns_per_step=round(cost_ns),
        gain=Gain(0.7 * cost_ns / step_ns, cost_ns / step_ns),
        confidence=0.8,
        evidence=(
            Evidence("gc_spread_share", cost_ns / step_ns, "share", LEAST_SHARE),
            Evidence("gc_longest_ns", max(one.longest_ns for one in garbage), "ns"),
        ),
        params={"longest_ns": max(one.longest_ns for one in garbage), "ranks": len(ledger)},
    )
