"""list-of-arrays-to-tensor: the step waits for data, and a large part of making it turns Python lists into tensors."""

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import stage_cost
from uncork.rules.rule import rule


@rule()
def list_of_arrays_to_tensor(
    codes: Ranks[LoaderCode] | None, ledgers: Ranks[StepLedger], stages: Ranks[LoaderStages] | None
) -> Cost | None:
    """Return what building tensors from Python lists costs while the step waits."""
    return stage_cost("to_tensor", codes, ledgers, stages, won=0.9, confidence=0.75)
