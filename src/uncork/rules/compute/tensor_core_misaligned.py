"""tensor-core-misaligned: 16-bit kernels read one or two elements at a time: a side is no multiple of 8."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.operator import Operator
from uncork.measure.precision import Precision
from uncork.measure.step_ledger import StepLedger
from uncork.rules.kernel_names import short
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.03
"""msprof-analyze's mark for what deserves to be looked at; padding costs a line or two."""
MULTIPLE = 8
"""16 bytes, what a thread reads at once, are 8 elements of 16 bits (NVIDIA, matrix multiplication guide)."""
WON_SHARES = (0.25, 0.6)
"""Part of the kernels' time that aligned kernels save; 1.3 to 2.5 × by NVIDIA's measurements of padded sizes."""


@rule()
def tensor_core_misaligned(precisions: Ranks[Precision], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of misaligned half-precision kernels."""
    cost = charge(ledgers, [one.misaligned_ns for one in precisions])
    if cost.share < LEAST_SHARE:
        return None
    precision, ledger = precisions[cost.place], ledgers[cost.place]
    largest = precision.misaligned[0] if precision.misaligned else None
    odd = _odd_sides(largest) if largest else []
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledger, 0.9 if odd else 0.75),
        location=largest.location(cost.rank) if largest else Location(rank=cost.rank),
        evidence=(
            Evidence("misaligned_share", cost.share, "share", LEAST_SHARE),
            *(Evidence("odd_side", float(side), "count") for side in odd[:2]),
        ),
        params={
            "kernel": short(precision.misaligned_kernel),
            "op": largest.name if largest else "gemm",
            "sizes": largest.sizes_text if largest else "@unknown.not_recorded",
            "where": largest.where if largest else "@unknown.place",
            "padded": -(-odd[0] // MULTIPLE) * MULTIPLE if odd else MULTIPLE,
        },
    )


def _odd_sides(operator: Operator) -> list[int]:
    """Return the sides of a product that are no multiples of 8."""
    sides = [int(str(operator.sizes[name])) for name in ("m", "n", "k") if name in operator.sizes]
    return [side for side in dict.fromkeys(sides) if side % MULTIPLE]
