"""bandwidth-bound-elementwise: a good part of the device's time only moves tensors to and from its memory."""

from dataclasses import replace

import numpy as np

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.bandwidth_kernels import BandwidthKernels
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.1
"""Of the step: below it other things are worth more."""
LOW, HIGH = 0.2, 0.5
"""Part that fusing gives back: a chain of n element-wise kernels becomes one pass; norms and reductions stay."""
_ADVICE = {
    "norm": ("fused-norm", "compile"),
    "softmax": ("fused-attention", "compile"),
    "copy": ("no-copies", "compile"),
    "optimizer": ("fused-optimizer", "compile"),
    "index": ("compile", "half-precision"),
}


@rule()
def bandwidth_bound_elementwise(kernels: Ranks[BandwidthKernels], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the ledger's time for bandwidth-bound kernels on the rank that spends most."""
    place = int(np.argmax([one.share("bandwidth") for one in ledger]))
    mine, steps = kernels[place], ledger[place]
    share = steps.share("bandwidth")
    if share < LEAST_SHARE or not mine.by_class:
        return None
    top, top_ns = mine.by_class[0]
    fused = "_fused_" in (mine.location.op or "")
    return Cost(
        ns_per_step=steps.mean_ns("bandwidth"),
        gain=Gain(LOW * share, HIGH * share),
        confidence=0.75,
        location=replace(mine.location, rank=kernels.numbers[place] if len(kernels) > 1 else None),
        evidence=(
            Evidence("bandwidth_share", share, "share", LEAST_SHARE),
            Evidence("bandwidth_kernels_per_step", mine.per_step, "count"),
        ),
        advice=("half-precision",) if fused else _ADVICE.get(top, ("compile", "half-precision")),
        params={"kernels": round(mine.per_step), "top": top, "top_ns": top_ns},
    )
