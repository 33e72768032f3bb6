"""zero-grad-not-none: zero_grad writes zeros into every gradient instead of dropping them."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.step_ledger import StepLedger
from uncork.measure.zeroed_gradients import ZeroedGradients
from uncork.rules.rule import rule

LEAST_SHARE = 0.005
"""It is one argument to change, so little is worth it."""


@rule()
def zero_grad_not_none(zeroed: Ranks[ZeroedGradients], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the time of writing zeros, on the device where there is one, on the rank where it is longest."""
    place = max(range(len(zeroed)), key=lambda one: _cost_ns(zeroed[one], ledger[one]))
    mine, step_ns = zeroed[place], ledger[place].mean_step_ns
    cost_ns = _cost_ns(mine, ledger[place])
    if mine.calls_per_step < 1 or not step_ns or cost_ns < LEAST_SHARE * step_ns:
        return None
    return Cost(
        ns_per_step=cost_ns,
        gain=Gain(0.5 * cost_ns / step_ns, cost_ns / step_ns),
        confidence=0.9,
        location=replace(mine.location, rank=zeroed.numbers[place] if len(zeroed) > 1 else None),
        evidence=(Evidence("zeroing_share", cost_ns / step_ns, "share", LEAST_SHARE),),
        params={"calls": round(mine.calls_per_step)},
    )


def _cost_ns(zeroed: ZeroedGradients, ledger: StepLedger) -> int:
    """Return the device's time for zeros as far as the ledger has it; without a device the host's."""
    if not ledger.on_device:
        return zeroed.host_ns_per_step if zeroed.calls_per_step else 0
    return min(zeroed.device_ns_per_step, ledger.mean_ns("bandwidth"))
