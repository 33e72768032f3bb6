"""TorchVersion: which PyTorch made the recording."""

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.machine import Machine
from uncork.records import dataclass


@dataclass(frozen=True)
class TorchVersion(Measurement):
    """The version, where it is known.

    Args:
        major: First number.
        minor: Second number.
    """

    major: int
    minor: int

    @classmethod
    def of(cls, rank: Rank) -> "TorchVersion":
        """Return the version; most traces do not carry it."""
        version = rank.made(Machine).torch
        if version is None:
            raise MissingEvidence("versions")
        return cls(*version)
