"""slow-read: the step waits for data, and reading files or answering requests is a large part of making it."""

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import stage_cost
from uncork.rules.rule import rule


@rule()
def slow_read(
    codes: Ranks[LoaderCode] | None,
    ledgers: Ranks[StepLedger],
    stages: Ranks[LoaderStages] | None,
) -> Cost | None:
    """Return what reading files or answering requests costs while the step waits."""
    return stage_cost("read", codes, ledgers, stages, won=0.8, confidence=0.8)
