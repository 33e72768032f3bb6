"""What Python costs that is for something beside the work: a debugger, a log, a profiler."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.python_gaps import GAP_CAUSES, PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.worth import charge, sure


def purpose_cost(
    purpose: str,
    gaps: Ranks[PythonGaps],
    ledgers: Ranks[StepLedger],
    *,
    metric: str,
    least_share: float,
    confidence: float,
) -> Cost | None:
    """Return the time of Python for a purpose in which nothing else works.

    Args:
        purpose: One of `uncork.measure.python_gaps.PURPOSES`.
        gaps: The Python time between operators.
        ledgers: Where the steps' time went.
        metric: Name of the evidence.
        least_share: Less of the step is no finding.
        confidence: Of the finding, before what lowers it.
    """
    values = [
        gap.part_ns(purpose, ledger.mean_ns(*GAP_CAUSES), ledger.mean_step_ns)
        for ledger, gap in zip(ledgers, gaps, strict=True)
    ]
    cost = charge(ledgers, values)
    top = gaps[cost.place].top(purpose)
    if cost.share < least_share or top is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 2, cost.share),
        confidence=sure(ledgers[cost.place], confidence),
        location=replace(top.location, rank=cost.rank),
        evidence=(Evidence(metric, cost.share, "share", least_share),),
        params={"where": where(top.location) or "Python"},
    )
