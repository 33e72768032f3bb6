"""fp32-matmul-without-tf32: fp32 matrix products run outside tensor cores that could do them in TF32."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.precision import Precision
from uncork.measure.step_ledger import StepLedger
from uncork.rules.kernel_names import short
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

USUAL_SPEEDUP = (1.5, 4.0)
"""Where the device is unknown: GeForce gains the least, A100 the most (NVIDIA on TensorFloat-32: up to 8 ×)."""


@rule()
def fp32_matmul_without_tf32(precisions: Ranks[Precision], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of fp32 matrix products outside tensor cores, on devices that have TF32."""
    cost = charge(ledgers, [one.product_fp32_ns if one.tf32 else 0 for one in precisions])
    if not cost.notable:
        return None
    precision, ledger = precisions[cost.place], ledgers[cost.place]
    high = precision.speedup("tf32") or USUAL_SPEEDUP[1]
    low = min(USUAL_SPEEDUP[0], 1 + (high - 1) / 2)
    largest = precision.products[0] if precision.products else None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * (1 - 1 / low), cost.share * (1 - 1 / max(high, low))),
        confidence=sure(ledger, 0.95),
        location=largest.location(cost.rank) if largest else Location(rank=cost.rank),
        evidence=(
            Evidence("fp32_products_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("tf32_products", precision.matrix_ns.get("tf32", 0), "ns"),
        ),
        params={
            "op": largest.name if largest else "gemm",
            "where": largest.where if largest else "@unknown.place",
            "sizes": largest.sizes_text if largest else "@unknown.not_recorded",
            "kernel": short(largest.kernel) if largest else "sgemm",
        },
    )
