"""Garbage: time of Python's garbage collector in each step."""

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass
from uncork.timeline import Timeline

REPEATED = 1.5
"""All collections together last this many times the longest, or a single one fell among the steps by chance."""


@dataclass(frozen=True)
class Garbage(Measurement):
    """Collections: as Python told the recorder, as a trace shows them, or as calls that the program makes itself.

    Args:
        collections: Per step.
        dur_ns: Their time per step.
        longest_ns: The longest one.
        called: Whether the program calls ``gc.collect`` itself.
        share: Of the time of all steps that were watched; None where only those of a trace were.
    """

    collections: float
    dur_ns: int
    longest_ns: int
    called: bool
    share: float | None = None

    @classmethod
    def of(cls, rank: Rank) -> "Garbage":
        """Return the collections of a rank; traces show them only when asked to, or where the program makes them."""
        calls = _calls(rank.deep)
        told = rank.recording.run.garbage if rank.recording.run else None
        if told is not None:
            per_step = told.collections / told.steps, told.dur_ns // told.steps
            counted_ns = told.dur_ns if told.dur_ns >= REPEATED * told.longest_ns else 0
            return cls(*per_step, told.longest_ns, bool(calls.any()), counted_ns / told.steps_ns)
        timeline, found = rank.timeline, rank.timeline.host.of_kind(Kind.GC)
        if not found.any():
            timeline, found = rank.deep, calls
        if not found.any():
            raise MissingEvidence("gc")
        host = timeline.host
        dur = host.dur_ns[found & timeline.in_steps]
        count = max(len(timeline.steps), 1)
        longest_ns = int(dur.max()) if len(dur) else 0
        return cls(len(dur) / count, int(dur.sum()) // count, longest_ns, bool(calls.any()))


def _calls(timeline: Timeline) -> npt.NDArray[np.bool_]:
    """Return which slices are calls of ``gc.collect`` by the program, as Python frames show them."""
    return timeline.named("<built-in function collect>", Kind.PYTHON_FUNCTION)
