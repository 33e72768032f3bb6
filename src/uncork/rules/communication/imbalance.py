"""imbalance: ranks have unequal work, now this one more, now that one, and each step lasts as long as the longest."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.matching import match
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import LATE_OF_STEP, lateness
from uncork.rules.rule import rule

LEAST_SHARE = 0.05
"""msprof speaks of unequal ranks when (largest - smallest) / mean is over 5 %; here what it costs the step."""
_WORK = ("gemm", "other_kernel", "bandwidth", "compute", "memop")


@rule(hidden_by=("late-rank",))
def imbalance(collectives: Ranks[Collectives], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return how much longer the most loaded rank of each step works than the ranks do on average."""
    if len(collectives) < 2:
        raise MissingEvidence("ranks")
    if len({one.ns.shape[1] for one in ledger}) > 1 or ledger[0].ns.shape[1] < 2:
        raise MissingEvidence("steps")
    work = np.array([_work_ns(one) for one in ledger], np.float64)
    step_ns = float(np.mean([one.mean_step_ns for one in ledger]))
    extra_ns = float((work.max(axis=0) - work.mean(axis=0)).mean())
    waits = lateness(match(collectives), collectives.numbers, float(np.mean([one.waited_for_ns for one in ledger])))
    if not step_ns or extra_ns < LEAST_SHARE * step_ns or waits.wait_share < LATE_OF_STEP:
        return None
    cost_ns = min(extra_ns, waits.wait_share * step_ns)
    spread = float(((work.max(axis=0) - work.min(axis=0)) / np.maximum(work.mean(axis=0), 1)).mean())
    return Cost(
        ns_per_step=round(cost_ns),
        gain=Gain(0.3 * cost_ns / step_ns, cost_ns / step_ns),
        confidence=0.7,
        evidence=(
            Evidence("work_spread", spread, "share", LEAST_SHARE),
            Evidence("waiting_share", waits.wait_share, "share", LATE_OF_STEP),
        ),
        params={"spread_share": spread, "ranks": len(ledger)},
    )


def _work_ns(ledger: StepLedger) -> np.typing.NDArray[np.int64]:
    """Return what a rank computes in each step."""
    rows = [place for place, cause in enumerate(ledger.causes) if cause in _WORK]
    total: np.typing.NDArray[np.int64] = ledger.ns[rows].sum(axis=0)
    return total
