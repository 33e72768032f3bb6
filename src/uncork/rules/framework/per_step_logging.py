"""per-step-logging: the program prints, logs or saves inside the steps."""

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.python_gaps import PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.beside_work import purpose_cost
from uncork.rules.rule import rule

LEAST_SHARE = 0.02
"""Logging less often is one line, worth a smaller share than other changes."""


@rule()
def per_step_logging(gaps: Ranks[PythonGaps], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of it in which nothing else works."""
    return purpose_cost("log", gaps, ledgers, metric="logging_share", least_share=LEAST_SHARE, confidence=0.8)
