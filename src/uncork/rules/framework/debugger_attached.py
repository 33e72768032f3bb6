"""debugger-attached: the program runs under a debugger or a tracer that is called for every line."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.python_gaps import GAP_CAUSES, PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.02
"""A debugger that is attached by mistake is worth removing at any noticeable share."""


@rule()
def debugger_attached(gaps: Ranks[PythonGaps], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of it in which nothing else works."""
    values = [
        gap.part_ns("debugger", ledger.mean_ns(*GAP_CAUSES), ledger.mean_step_ns)
        for ledger, gap in zip(ledgers, gaps, strict=True)
    ]
    cost = charge(ledgers, values)
    top = gaps[cost.place].top("debugger")
    if cost.share < LEAST_SHARE or top is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 2, cost.share),
        confidence=sure(ledgers[cost.place], 0.85),
        location=replace(top.location, rank=cost.rank),
        evidence=(Evidence("debugger_share", cost.share, "share", LEAST_SHARE),),
        params={"where": where(top.location) or "Python"},
    )
