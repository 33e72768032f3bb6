"""debugger-attached: the program runs under a debugger or a tracer that is called for every line."""

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.python_gaps import PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.beside_work import purpose_cost
from uncork.rules.rule import rule

LEAST_SHARE = 0.02
"""A debugger that is attached by mistake is worth removing at any noticeable share."""


@rule()
def debugger_attached(gaps: Ranks[PythonGaps], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of it in which nothing else works."""
    return purpose_cost("debugger", gaps, ledgers, metric="debugger_share", least_share=LEAST_SHARE, confidence=0.85)
