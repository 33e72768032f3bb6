"""Roof: the least time that a device needs for some work."""

from uncork.formulas import Work
from uncork.hardware import Peaks
from uncork.records import dataclass


@dataclass(frozen=True)
class Roof:
    """The least time that a device needs for some work, by the vendor's figures.

    Args:
        ns: That time.
        compute_bound: Whether arithmetic takes longer than moving the bytes.
    """

    ns: float
    compute_bound: bool


OVER_PEAK_SHARE = 1.1
"""More than 110 % of a peak is an error of ours, not a fast operator."""


def roof(work: Work, peaks: Peaks, precision: str = "") -> Roof | None:
    """Return the roof over some work, None where the device has no figure for its precision.

    Args:
        work: What is to be done.
        peaks: What the device can do.
        precision: What its kernels compute in, where that is known better than by the tensors (``tf32``).
    """
    kind = precision or work.precision
    rate = peaks.matrix_flop_per_s(kind) if work.matrix else peaks.peak_flop_per_s.get("fp32")
    if (work.matrix and not rate) or not peaks.peak_bytes_per_s:
        return None
    arithmetic_ns = work.flop / rate * 1e9 if rate else 0.0
    memory_ns = work.moved_bytes / peaks.peak_bytes_per_s * 1e9
    return Roof(max(arithmetic_ns, memory_ns), arithmetic_ns > memory_ns)
