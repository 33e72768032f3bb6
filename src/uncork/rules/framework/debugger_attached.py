"""debugger-attached: the program runs under a debugger or a tracer that is called for every line."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.machine import Machine
from uncork.measure.python_gaps import GAP_CAUSES, PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.beside_work import purpose_cost
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.02
"""A debugger that is attached by mistake is worth removing at any noticeable share."""


@rule()
def debugger_attached(gaps: Ranks[PythonGaps], ledgers: Ranks[StepLedger], machines: Ranks[Machine]) -> Cost | None:
    """Return the time of it in which nothing else works; where only its name is known, the Python that it slows."""
    seen = purpose_cost("debugger", gaps, ledgers, metric="debugger_share", least_share=LEAST_SHARE, confidence=0.85)
    if seen is not None:
        return seen
    slowed = [
        # Without workers the main thread loads, and its Python is traced as well.
        ledger.mean_ns(*GAP_CAUSES, *(("data_loading",) if machine.num_workers == 0 else ())) if machine.tracer else 0
        for ledger, machine in zip(ledgers, machines, strict=True)
    ]
    cost = charge(ledgers, slowed)
    if cost.share < LEAST_SHARE:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.8),
        location=Location(rank=cost.rank),
        evidence=(Evidence("traced_python_share", cost.share, "share", LEAST_SHARE),),
        params={"where": machines[cost.place].tracer},
    )
