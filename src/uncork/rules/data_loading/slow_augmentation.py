"""slow-augmentation: the step waits for data, and augmentation is a large part of making it."""

from dataclasses import replace

from uncork.findings import Cost
from uncork.measure import Ranks
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import stage_cost
from uncork.rules.rule import rule


@rule()
def slow_augmentation(
    codes: Ranks[LoaderCode] | None,
    ledgers: Ranks[StepLedger],
    machines: Ranks[Machine],
    stages: Ranks[LoaderStages] | None,
) -> Cost | None:
    """Return what augmentation costs while the step waits; without a device there is none to move it to."""
    cost = stage_cost("augment", codes, ledgers, stages, won=0.8, confidence=0.8)
    if cost is None:
        return None
    cheaper = "one-call" if cost.params["call"] else "vectorise"
    on_device = machines[0].device != "cpu"
    return replace(cost, advice=("on-batch", cheaper, "order") if on_device else (cheaper, "order", "on-batch"))
