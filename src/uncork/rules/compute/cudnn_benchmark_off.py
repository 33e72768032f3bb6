"""cudnn-benchmark-off: kernels of convolutions are chosen by a rule of thumb, or tried again for ever new sizes."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.convolutions import Convolutions
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.2
"""Convolutions below a fifth of the step: even the best kernels move little."""
WON_SHARES = (0.0, 0.15)
"""PyTorch's performance tuning guide promises no figure; reports lie between nothing and some ten percent."""


@rule()
def cudnn_benchmark_off(convolutions: Ranks[Convolutions], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return what choosing kernels by trying them could give back."""
    cost = charge(ledgers, [one.conv_ns for one in convolutions])
    convs, ledger = convolutions[cost.place], ledgers[cost.place]
    if cost.share < LEAST_SHARE:
        return None
    if convs.benchmark is None:
        raise MissingEvidence("settings")
    per_step = convs.calls / convs.steps if convs.steps else 0.0
    # With fixed sizes every step meets the same shapes; more than its calls means that sizes change.
    changing = convs.steps > 1 and convs.shapes > max(per_step, 1.0)
    if convs.benchmark != changing:
        return None
    largest = convs.largest
    return Cost(
        ns_per_step=0,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledger, 0.6),
        location=largest.location(cost.rank) if largest else Location(rank=cost.rank),
        evidence=(
            Evidence("conv_share", cost.share, "share", LEAST_SHARE),
            Evidence("conv_shapes", float(convs.shapes), "count"),
            Evidence("conv_calls", per_step, "count"),
        ),
        advice=("fix-sizes",) if changing else ("benchmark", "fix-sizes"),
        params={"conv_ns": convs.conv_ns, "conv_share": cost.share, "shapes": convs.shapes},
    )
