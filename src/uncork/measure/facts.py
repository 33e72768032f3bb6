"""Facts: what a recording says about itself, without its events."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from uncork.events import EventTable, Kind
from uncork.measure import Measurement, Rank
from uncork.recording import Device, Flags, RunInfo
from uncork.records import dataclass


@dataclass(frozen=True)
class Facts(Measurement):
    """The head of a recording; for its fields see `uncork.recording.Recording`.

    Args:
        events: Number of events read.
        process: The process that the first operator ran in, as the recording numbers it; empty where there is none.
        operators_ns: From the begin of the first operator to the end of the last.
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
    process: str
    operators_ns: tuple[int, int]

    @classmethod
    def of(cls, rank: Rank) -> "Facts":
        """Return the facts of a rank's recording."""
        recording = rank.recording
        process, operators_ns = _operators(recording.events)
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
            process=process,
            operators_ns=operators_ns,
        )


def _operators(events: EventTable | None) -> tuple[str, tuple[int, int]]:
    """Return the process of the first operator, and when operators ran."""
    if events is None or not len(rows := np.flatnonzero(events.kind == Kind.CPU_OP)):
        return "", (0, 0)
    begin_ns, end_ns = int(events.ts_ns[rows].min()), int(events.end_ns[rows].max())
    return events.tracks[events.track[rows[0]]].pid, (begin_ns, end_ns)


def repairs_of(facts: Sequence[Facts]) -> Counter[str]:
    """Return what was mended in all files together; each of the ranks in one file tells all of its repairs."""
    repairs: Counter[str] = Counter()
    for of_file in {fact.source: fact.repairs for fact in facts}.values():
        repairs.update(of_file)
    return repairs


def _either(flags: Flags, deep: Flags) -> Flags:
    """Return what one of two windows holds."""
    return Flags(**{name: value or getattr(deep, name) for name, value in vars(flags).items()})
