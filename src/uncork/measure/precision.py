"""Precision: what the device's matrix kernels compute in, and what the device could."""

from collections.abc import Mapping

from uncork.hardware import BF16_SINCE, TENSOR_CORES_SINCE, TF32_SINCE, Peaks, capability, is_amd, peaks_of
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.kernels_table import KernelTable
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable
from uncork.records import dataclass
from uncork.tensorcores import is_misaligned

REACHED_SHARE = 0.85
"""Share of the tensor cores' peak that large matrix products reach (ml-engineering's measurements: 0.77 to 0.87)."""
WIDE = ("fp32", "tf32")
NARROW = ("fp16", "bf16", "fp8")
USUAL_SHARE = 0.6
"""Share of the peak outside tensor cores that is assumed where shapes do not tell."""


@dataclass(frozen=True)
class Precision(Measurement):
    """Matrix kernels (matrix products, convolutions, attention) by what they compute in.

    Args:
        step_ns: Mean duration of a step.
        matrix_ns: Precision → time per step; ``""`` where kernels do not say.
        product_fp32_ns: Time per step of matrix products in fp32 outside tensor cores.
        misaligned_ns: Time per step of half-precision kernels that read one or two elements at a time.
        misaligned_kernel: The longest of those, or empty.
        tensor_cores: Whether the device has tensor (matrix) cores for half precision; None where it is not known.
        tf32: Whether they do TF32; None where it is not known.
        bf16: Whether they do bf16; None where it is not known.
        peaks: What the device can do, None where it is not known.
        products: The operators whose fp32 products take most time, largest first.
        wide: The operators whose 32-bit products and convolutions take most time, largest first.
        misaligned: The operators of misaligned kernels, largest first.
    """

    step_ns: int
    matrix_ns: Mapping[str, int]
    product_fp32_ns: int
    misaligned_ns: int
    misaligned_kernel: str
    tensor_cores: bool | None
    tf32: bool | None
    bf16: bool | None
    peaks: Peaks | None
    products: tuple[Operator, ...]
    wide: tuple[Operator, ...]
    misaligned: tuple[Operator, ...]

    @classmethod
    def of(cls, rank: Rank) -> "Precision":
        """Return the precisions of a rank; without device work there are none."""
        table = rank.made(KernelTable)
        devices = rank.recording.devices
        major = capability(devices)
        known = peaks_of(devices)
        half = known is not None and "fp16" in known.peak_flop_per_s
        amd = is_amd(devices)
        products = [kernel for kernel in table.kernels if kernel.kind == "gemm" and kernel.precision == "fp32"]
        wide = [one.name for one in table.kernels if one.precision in WIDE and one.kind in {"gemm", "conv"}]
        slow = [kernel for kernel in table.kernels if is_misaligned(kernel.name)]
        operators = _operators(rank)
        return cls(
            step_ns=table.step_ns,
            matrix_ns=table.precision_ns,
            product_fp32_ns=sum(kernel.device_ns for kernel in products),
            misaligned_ns=table.misaligned_ns,
            misaligned_kernel=slow[0].name if slow else "",
            tensor_cores=(half or None) if amd else None if major is None else major >= TENSOR_CORES_SINCE,
            tf32=False if amd else None if major is None else major >= TF32_SINCE,
            bf16=(half or None) if amd else None if major is None else major >= BF16_SINCE,
            peaks=known,
            products=_launching(operators, {kernel.name for kernel in products}),
            wide=_launching(operators, set(wide)),
            misaligned=_launching(operators, {kernel.name for kernel in slow}),
        )

    def speedup(self, precision: str, now: str = "fp32") -> float | None:
        """Return how many times faster matrix work could be in another precision at best, None where not known.

        By the share of today's peak that it reaches, and what is usually reached of the other.
        """
        if self.peaks is None:
            return None
        top, bottom = self.peaks.matrix_flop_per_s(precision), self.peaks.matrix_flop_per_s(now)
        if not top or not bottom:
            return None
        alike = (*self.products, *self.wide)
        known = (op.roofline_share for op in alike if op.precision == now and op.roofline_share)
        reached = next(known, USUAL_SHARE)
        return max(REACHED_SHARE * top / bottom / min(reached, 1.0), 1.0)


def _operators(rank: Rank) -> tuple[Operator, ...]:
    """Return the parts of all operators; none where the host is not recorded."""
    try:
        table = rank.made(OperatorTable)
    except MissingEvidence:
        return ()
    return tuple(part for operator in table.operators for part in (operator.parts or (operator,)))


def _launching(operators: tuple[Operator, ...], kernels: set[str]) -> tuple[Operator, ...]:
    """Return those whose longest kernel is one of some kernels, largest first."""
    found = [operator for operator in operators if operator.kernel in kernels and operator.device_self_ns]
    return tuple(sorted(found, key=lambda operator: -operator.device_self_ns)[:3])
