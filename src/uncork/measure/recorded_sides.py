"""RecordedSides: whether a recording shows the host, the device, or both."""

from uncork.events import Kind
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass


@dataclass(frozen=True)
class RecordedSides(Measurement):
    """What a recording of a device holds.

    Args:
        host: Whether it holds operators, regions or Python frames of the host.
        idle_share: Share of the steps in which no device works.
    """

    host: bool
    idle_share: float

    @classmethod
    def of(cls, rank: Rank) -> "RecordedSides":
        """Return the sides of a rank; without a device there is only one."""
        timeline = rank.timeline
        if not len(timeline.device):
            raise MissingEvidence("device")
        ledger = rank.ledger
        total = int(ledger.step_ns.sum())
        return cls(
            host=bool(timeline.events.of_kind(Kind.CPU_OP, Kind.USER_ANNOTATION, Kind.PYTHON_FUNCTION).any()),
            idle_share=1.0 - int(ledger.busy_ns.sum()) / total if total else 0.0,
        )
