"""bandwidth-bound-elementwise: a good part of the device's time only moves tensors to and from its memory."""

from dataclasses import replace

import numpy as np

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.bandwidth_kernels import BandwidthKernels
from uncork.measure.compiled import Compiled
from uncork.measure.machine import Machine
from uncork.measure.precision import NARROW, WIDE, Precision
from uncork.measure.step_ledger import StepLedger
from uncork.rules.pace import compiles
from uncork.rules.rule import rule

LEAST_SHARE = 0.1
"""Of the step: below it other things are worth more."""
LOW, HIGH = 0.2, 0.5
"""Part that fusing gives back: a chain of n element-wise kernels becomes one pass; norms and reductions stay."""


@rule()
def bandwidth_bound_elementwise(
    kernels: Ranks[BandwidthKernels],
    ledger: Ranks[StepLedger],
    machines: Ranks[Machine],
    compiled: Ranks[Compiled] | None,
    precisions: Ranks[Precision] | None,
) -> Cost | None:
    """Return the ledger's time for bandwidth-bound kernels on the rank that spends most."""
    place = int(np.argmax([one.share("bandwidth") for one in ledger]))
    mine, steps = kernels[place], ledger[place]
    share = steps.share("bandwidth")
    if share < LEAST_SHARE or not mine.by_class:
        return None
    top, top_ns = mine.by_class[0]
    precision = precisions[place] if precisions else None
    able = compiles(machines[place]) and not (compiled and compiled[place].used)
    return Cost(
        ns_per_step=steps.mean_ns("bandwidth"),
        gain=Gain(LOW * share, HIGH * share),
        confidence=0.75,
        location=replace(mine.location, rank=kernels.numbers[place] if len(kernels) > 1 else None),
        evidence=(
            Evidence("bandwidth_share", share, "share", LEAST_SHARE),
            Evidence("bandwidth_kernels_per_step", mine.per_step, "count"),
        ),
        advice=_advice(top, mine.location.op, precision, able=able),
        params={
            "kernels": round(mine.per_step),
            "top": top,
            "top_ns": top_ns,
            "half": "float16" if precision and precision.bf16 is False else "bfloat16",
        },
    )


def _advice(top: str, op: str | None, precision: Precision | None, *, able: bool) -> tuple[str, ...]:
    """Return what helps, best first, for the class of most of the time.

    Args:
        top: That class.
        op: The operator that launches most of it.
        precision: What the device's matrix kernels compute in.
        able: Whether compiling is possible and not done yet.
    """
    if top == "optimizer":
        return ("smaller-state",) if op and "_fused_" in op else ("fused-optimizer", "smaller-state")
    found: tuple[str, ...] = ("no-copies",) if top == "copy" else ()
    found += ("compile",) if able else ()
    if precision and any(precision.matrix_ns.get(name, 0) for name in WIDE):
        # Half the bytes only where matrix work tells that tensors are wide now.
        narrow = any(precision.matrix_ns.get(name, 0) for name in NARROW)
        found += () if narrow or precision.tensor_cores is False else ("half-precision",)
    return (*found, "fewer-passes")
