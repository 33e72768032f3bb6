"""DeviceRoofline: how near a busy device is to what it could do at most."""

from uncork.kernels import COMPUTE
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operators import operator_parts
from uncork.records import dataclass

NEAR_ROOF_SHARE = 0.5
"""At half of what memory can deliver, memory holds a product up; far below, its launch or its shape does."""


@dataclass(frozen=True)
class DeviceRoofline(Measurement):
    """Device work against its roofline.

    Args:
        known_share: Share of the device's time in operators whose least time is known.
        attained_share: Their least time over the time they took.
        memory_bound_share: Share of the arithmetic kernels' time in those that wait for memory: moving their bytes sets
            their least time, and they take at most twice that (thin products: one token, small batches).
    """

    known_share: float
    attained_share: float
    memory_bound_share: float = 0.0

    @classmethod
    def of(cls, rank: Rank) -> "DeviceRoofline":
        """Return how a rank stands; raises `MissingEvidence` where no operator can be held against a roofline."""
        if not len(rank.timeline.device):
            raise MissingEvidence("device")
        parts = operator_parts(rank)
        whole_ns = sum(part.device_self_ns for part in parts)
        held = [part for part in parts if part.roofline_share is not None and not part.over_peak]
        held_ns = sum(part.device_self_ns for part in held)
        if not held_ns:
            raise MissingEvidence("shapes")
        least_ns = sum(part.device_self_ns * (part.roofline_share or 0.0) for part in held)
        arithmetic = [part for part in parts if part.kernel_class in COMPUTE]
        thin_ns = sum(
            part.device_self_ns
            for part in arithmetic
            if part.compute_bound is False and (part.roofline_share or 0.0) >= NEAR_ROOF_SHARE
        )
        return cls(
            known_share=held_ns / whole_ns,
            attained_share=least_ns / held_ns,
            memory_bound_share=thin_ns / max(sum(part.device_self_ns for part in arithmetic), 1),
        )
