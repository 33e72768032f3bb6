"""conv-layout-conversions: tensors are turned from NCHW to NHWC and back around convolutions."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.convolutions import Convolutions
from uncork.measure.step_ledger import StepLedger
from uncork.rules.kernel_names import short
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.02
LEAST_CONV_SHARE = 0.1
"""TraceLens' agent calls transposes of 10 to 20 % of the convolutions' time moderate, more high."""
WON_SHARES = (0.5, 1.0)
"""Conversions at the borders of the network remain; kernels that match the layout often gain more than this."""


@rule()
def conv_layout_conversions(convolutions: Ranks[Convolutions], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of layout conversions."""
    cost = charge(ledgers, [one.layout_ns for one in convolutions])
    convs, ledger = convolutions[cost.place], ledgers[cost.place]
    of_convs = convs.layout_ns / convs.conv_ns if convs.conv_ns else 0.0
    if cost.share < LEAST_SHARE or of_convs < LEAST_CONV_SHARE or "transdata" in convs.layout_kernel.lower():
        return None  # Ascend's private formats: channels_last does not spare those
    largest = convs.largest
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledger, 0.85),
        location=largest.location(cost.rank) if largest else Location(rank=cost.rank, op=convs.layout_kernel or None),
        evidence=(
            Evidence("layout_share", cost.share, "share", LEAST_SHARE),
            Evidence("layout_of_conv_share", min(of_convs, 1.0), "share", LEAST_CONV_SHARE),
        ),
        advice=("model", "mixed-layouts") if convs.channels_last else ("channels-last", "mixed-layouts"),
        params={
            "kernel": short(convs.layout_kernel),
            "conv_ns": convs.conv_ns,
            "where": largest.where if largest else "@unknown.place",
        },
    )
