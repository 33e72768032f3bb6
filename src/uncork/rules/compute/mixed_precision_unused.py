"""mixed-precision-unused: matrix work in 32 bits on a device whose tensor cores do 16 bits much faster."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.inference import Inference
from uncork.measure.precision import NARROW, WIDE, Precision
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.1
"""Matrix work below a tenth of the step: converting costs about what it gives."""
MOST_HALF_SHARE = 0.1
"""XProf speaks of unused half precision where less than a tenth of the device's compute is in 16 bits."""
USUAL_SPEEDUP = (1.5, 3.0)
"""NVIDIA's figures for automatic mixed precision on V100 and later: 1.5 to 3 ×, for whole networks."""

_FORWARD = {"bf16": "bf16-forward", "fp16": "fp16-forward"}
"""Advice by the kind of numbers where nothing is trained."""


@rule()
def mixed_precision_unused(
    precisions: Ranks[Precision], ledgers: Ranks[StepLedger], kinds: Ranks[Inference] | None
) -> Cost | None:
    """Return the time of 32-bit matrix work where next to none is in 16 bits."""
    cost = charge(ledgers, [_wide_ns(one) for one in precisions])
    if cost.share < LEAST_SHARE:
        return None
    precision, ledger = precisions[cost.place], ledgers[cost.place]
    kind = "bf16" if precision.bf16 else "fp16"
    now = max(WIDE, key=lambda name: precision.matrix_ns.get(name, 0))
    high = precision.speedup(kind, now) or USUAL_SPEEDUP[1]
    low = min(USUAL_SPEEDUP[0], 1 + (high - 1) / 2)
    largest = precision.wide[0] if precision.wide else None
    half_ns = sum(precision.matrix_ns.get(name, 0) for name in NARROW)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * (1 - 1 / low), cost.share * (1 - 1 / max(high, low))),
        confidence=sure(ledger, 0.85),
        location=largest.location(cost.rank) if largest else Location(rank=cost.rank),
        evidence=(
            Evidence("wide_matrix_share", cost.share, "share", LEAST_SHARE),
            Evidence("half_share", half_ns / (half_ns + cost.ns) if cost.ns else 0.0, "share", MOST_HALF_SHARE, "<"),
        ),
        advice=(_FORWARD[kind] if kinds and kinds[cost.place].forward_only else kind,),
        params={"now": now, "where": largest.where if largest else "@unknown.place"},
    )


def _wide_ns(precision: Precision) -> int:
    """Return the time per step of 32-bit matrix work, 0 where 16 bits are in use or the device cannot do them."""
    if not precision.tensor_cores:
        return 0
    wide = sum(precision.matrix_ns.get(name, 0) for name in WIDE)
    narrow = sum(precision.matrix_ns.get(name, 0) for name in NARROW)
    return wide if narrow < MOST_HALF_SHARE * (wide + narrow) else 0
