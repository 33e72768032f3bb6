"""RecordedFlags: what the recording was asked to hold, its deep window included."""

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass

WANTED = {"shapes": "record_shapes", "memory": "profile_memory", "stacks": "with_stack"}
"""The three that findings need most (requirement R1.3), and their names in ``torch.profiler.profile``."""


@dataclass(frozen=True)
class RecordedFlags(Measurement):
    """Which of the three were left out.

    Args:
        left_out: Their names in ``torch.profiler.profile``.
    """

    left_out: tuple[str, ...]

    @classmethod
    def of(cls, rank: Rank) -> "RecordedFlags":
        """Return what was left out; a recording that says nothing about any of them cannot be judged."""
        recording = rank.recording
        if recording.events is None:
            raise MissingEvidence("events")
        deep = recording.deep.flags if recording.deep else recording.flags
        state = {name: getattr(recording.flags, name) or getattr(deep, name) for name in WANTED}
        if all(value is None for value in state.values()):
            raise MissingEvidence("flags")
        return cls(tuple(WANTED[name] for name, value in state.items() if value is False))
