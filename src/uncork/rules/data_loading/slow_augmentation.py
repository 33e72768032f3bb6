"""slow-augmentation: the step waits for data, and augmentation is a large part of making it."""

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import stage_cost
from uncork.rules.rule import rule


@rule()
def slow_augmentation(
    codes: Ranks[LoaderCode], ledgers: Ranks[StepLedger], stages: Ranks[LoaderStages] | None
) -> Cost | None:
    """Return what augmentation costs while the step waits."""
    return stage_cost("augment", codes, ledgers, stages, won=0.8, confidence=0.8)
