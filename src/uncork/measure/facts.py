"""Facts: what a recording says about itself, without its events."""

from collections import Counter
from collections.abc import Mapping, Sequence

from uncork.measure import Measurement, Rank
from uncork.recording import Device, Flags, RunInfo
from uncork.records import dataclass


@dataclass(frozen=True)
class Facts(Measurement):
    """The head of a recording; for its fields see `uncork.recording.Recording`.

    Args:
        events: Number of events read.
    """

    source: str
    format: str
    rank: int | None
    world_size: int | None
    devices: tuple[Device, ...]
    host: Mapping[str, object]
    flags: Flags
    versions: Mapping[str, str]
    repairs: Mapping[str, int]
    run: RunInfo | None
    events: int

    @classmethod
    def of(cls, rank: Rank) -> "Facts":
        """Return the facts of a rank's recording."""
        recording = rank.recording
        return cls(
            source=recording.source,
            format=recording.format,
            rank=recording.rank,
            world_size=recording.world_size,
            devices=recording.devices,
            host=dict(recording.host),
            flags=recording.flags if recording.deep is None else _either(recording.flags, recording.deep.flags),
            versions=dict(recording.versions),
            repairs=dict(recording.repairs),
            run=recording.run,
            events=0 if recording.events is None else len(recording.events),
        )


def repairs_of(facts: Sequence[Facts]) -> Counter[str]:
    """Return what was mended in all files together; each of the ranks in one file tells all of its repairs."""
    repairs: Counter[str] = Counter()
    for of_file in {fact.source: fact.repairs for fact in facts}.values():
        repairs.update(of_file)
    return repairs


def _either(flags: Flags, deep: Flags) -> Flags:
    """Return what one of two windows holds."""
    return Flags(**{name: value or getattr(deep, name) for name, value in vars(flags).items()})
