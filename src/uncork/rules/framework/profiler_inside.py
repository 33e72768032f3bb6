"""profiler-inside: the program's own profiling code runs inside the steps."""

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.python_gaps import PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.beside_work import purpose_cost
from uncork.rules.rule import rule

LEAST_SHARE = 0.05
"""Named regions and profiler steps cost microseconds each; below this share they are worth having."""


@rule()
def profiler_inside(gaps: Ranks[PythonGaps], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of it in which nothing else works."""
    return purpose_cost("profiler", gaps, ledgers, metric="profiler_share", least_share=LEAST_SHARE, confidence=0.7)
