"""slow-decode: the step waits for data, and decoding is a large part of making it."""

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import stage_cost
from uncork.rules.rule import rule


@rule()
def slow_decode(
    codes: Ranks[LoaderCode] | None, ledgers: Ranks[StepLedger], stages: Ranks[LoaderStages] | None
) -> Cost | None:
    """Return what decoding costs while the step waits."""
    return stage_cost("decode", codes, ledgers, stages, won=0.7, confidence=0.8)
