"""Garbage: time of Python's garbage collector in each step."""

from dataclasses import dataclass

import numpy as np

from uncork.events import Kind
from uncork.measure import Measurement, MissingEvidence, Rank


@dataclass(frozen=True)
class Garbage(Measurement):
    """Collections, by the recorder's own events or by calls the program makes itself.

    Args:
        collections: Per step.
        dur_ns: Their time per step.
        longest_ns: The longest one.
        called: Whether the program calls ``gc.collect`` itself.
    """

    collections: float
    dur_ns: int
    longest_ns: int
    called: bool

    @classmethod
    def of(cls, rank: Rank) -> "Garbage":
        """Return the collections of a rank; traces show them only when asked to, or where the program makes them."""
        timeline = rank.timeline
        if not timeline.events.of_kind(Kind.GC).any():
            timeline = rank.deep  # calls that the program makes itself show as Python frames
        host = timeline.host
        calls = timeline.named("<built-in function collect>", Kind.PYTHON_FUNCTION)
        events = host.kind == Kind.GC
        found = np.flatnonzero((events if events.any() else calls) & timeline.in_steps)
        if not events.any() and not calls.any():
            raise MissingEvidence("gc")
        dur = host.dur_ns[found]
        count = max(len(timeline.steps), 1)
        return cls(
            collections=len(found) / count,
            dur_ns=int(dur.sum()) // count,
            longest_ns=int(dur.max()) if len(dur) else 0,
            called=bool(calls.any()),
        )
