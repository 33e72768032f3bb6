"""Headroom: how near a busy device is to what it could do at most."""

from dataclasses import dataclass

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operators import operator_parts


@dataclass(frozen=True)
class Headroom(Measurement):
    """Device work against its roofline.

    Args:
        known_share: Share of the device's time in operators whose least time is known.
        attained_share: Their least time over the time they took.
    """

    known_share: float
    attained_share: float

    @classmethod
    def of(cls, rank: Rank) -> "Headroom":
        """Return a rank's headroom; raises `MissingEvidence` where no operator can be held against a roofline."""
        if not len(rank.timeline.device):
            raise MissingEvidence("device")
        parts = operator_parts(rank)
        whole_ns = sum(part.device_self_ns for part in parts)
        held = [part for part in parts if part.roofline_share is not None and not part.over_peak]
        held_ns = sum(part.device_self_ns for part in held)
        if not held_ns:
            raise MissingEvidence("shapes")
        least_ns = sum(part.device_self_ns * (part.roofline_share or 0.0) for part in held)
        return cls(known_share=held_ns / whole_ns, attained_share=least_ns / held_ns)
