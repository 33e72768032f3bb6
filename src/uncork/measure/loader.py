"""LoaderWait: how long each step waits for its next batch, and how the program loads."""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.intervals import covered_ns, intersect, intervals, subtract, total_ns
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.operators import LOADER_FRAME, is_loader
from uncork.records import dataclass
from uncork.timeline import Timeline, once

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_COLLATE_OP = re.compile(r"^aten::(stack|cat)$")
_NEW_EPOCH = re.compile(r"^aten::(randperm|random_)$")
"""What making an iterator draws: a seed for the workers, and the order of the items where they are shuffled."""


@dataclass(frozen=True, eq=False)
class LoaderWait(Measurement):
    """The main thread's time in the DataLoader's next.

    Args:
        wait_ns: Time in each step, int64 (steps,).
        idle_ns: Part of it in which no device works (all of it on the CPU), int64 (steps,).
        calls: Batches asked for in all steps.
        iterator: ``single`` (loads in the main process), ``multi`` (workers load), ``named`` (a region of that name,
            which does not tell), or ``none``.
        longest_ns: The longest single wait.
        starts: Iterators made in the steps, one per epoch.
        start_ns: Waits right after an iterator was made, in all steps: with workers they hold the workers' start.
        collate_ns: Time per step in stacking a batch together under it.
    """

    wait_ns: IntArray
    idle_ns: IntArray
    calls: int
    iterator: str
    longest_ns: int
    starts: int
    start_ns: int
    collate_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "LoaderWait":
        """Return the waits of a rank; a recording without host operators cannot show them."""
        timeline = rank.timeline
        host = timeline.host
        if not host.of_kind(Kind.CPU_OP, Kind.USER_ANNOTATION).any():
            raise MissingEvidence("host")
        places = next_calls(timeline)
        steps = timeline.steps
        spans = intervals(host.start_ns[places], host.end_ns[places])
        inside = covered_ns(spans, steps.start_ns, steps.end_ns)
        quiet = subtract(spans, timeline.device_busy)
        dur = host.dur_ns[places]
        fresh = _starts(timeline, places)
        count = max(len(steps.start_ns), 1)
        return cls(
            wait_ns=inside,
            idle_ns=covered_ns(quiet, steps.start_ns, steps.end_ns),
            calls=len(places),
            iterator=iterator(timeline, places),
            longest_ns=int(dur.max()) if len(dur) else 0,
            starts=int(fresh.sum()),
            start_ns=int(dur[fresh].sum()),
            collate_ns=_collate_ns(timeline, places) // count,
        )

    @property
    def mean_ns(self) -> int:
        """Return the mean wait per step."""
        return int(self.wait_ns.mean()) if len(self.wait_ns) else 0

    @property
    def start_share(self) -> float:
        """Return the share of all waiting that follows the making of an iterator."""
        total = int(self.wait_ns.sum())
        return min(self.start_ns / total, 1.0) if total else 0.0

    @property
    def longest_share(self) -> float:
        """Return the share of all waiting that is the longest wait's."""
        total = int(self.wait_ns.sum())
        return min(self.longest_ns / total, 1.0) if total else 0.0


@once
def next_calls(timeline: Timeline) -> IntArray:
    """Return the main thread's outermost slices of the DataLoader's next: the profiler's marks, else its frames."""
    host = timeline.host
    for fits in (
        timeline.named(is_loader, Kind.CPU_OP, Kind.USER_ANNOTATION),
        timeline.named(LOADER_FRAME, Kind.PYTHON_FUNCTION),
    ):
        places = np.flatnonzero(fits & (host.track == timeline.main_track))
        if len(places):
            outer = host.ancestor_where(fits, host.parent[places]) < 0
            return places[outer]
    return np.empty(0, np.int64)


def loads_nothing(rank: Rank) -> bool:
    """Return whether the recording shows what the host does, and no loader among it."""
    table = rank.timeline.events
    ops = table.of_kind(Kind.CPU_OP, Kind.USER_ANNOTATION)
    return bool(ops.any()) and not len(next_calls(rank.timeline))


def under(timeline: Timeline, places: IntArray) -> BoolArray:
    """Return for each host slice whether it lies strictly under one of some slices."""
    host = timeline.host
    inside: BoolArray = host.ancestor_where(_mask(len(host), places), host.parent) >= 0
    return inside


def _starts(timeline: Timeline, places: IntArray) -> BoolArray:
    """Return which calls of next are the first of a new iterator: its seed or order was drawn since the last call."""
    host = timeline.host
    drawn = timeline.named(_NEW_EPOCH, Kind.CPU_OP) & (host.track == timeline.main_track)
    drawn &= host.ancestor_where(_mask(len(host), places), host.parent) < 0
    when = np.sort(host.start_ns[drawn])
    until = host.start_ns[places]
    since = np.concatenate([[np.iinfo(np.int64).min], host.end_ns[places][:-1]])
    fresh: BoolArray = np.searchsorted(when, until) > np.searchsorted(when, since)
    return fresh


def _mask(size: int, places: IntArray) -> BoolArray:
    marked = np.zeros(size, bool)
    marked[places] = True
    return marked


def iterator(timeline: Timeline, places: IntArray) -> str:
    """Return how batches are made, from the iterator's class in the mark or from what runs under the frame."""
    if not len(places):
        return "none"
    host, table = timeline.host, timeline.events
    below = under(timeline, places)
    below[places] = True
    # Trainers put a region of their own around the DataLoader's.
    names = set(table.names(host.row[below]))
    if any("SingleProcess" in name or "_utils/fetch.py" in name for name in names):
        return "single"
    return "multi" if any("MultiProcess" in name or "_get_data" in name for name in names) else "named"


def _collate_ns(timeline: Timeline, places: IntArray) -> int:
    """Return the time in stacking batches directly below the loader's next, in all steps."""
    host = timeline.host
    is_op = (host.kind == Kind.CPU_OP) & under(timeline, places)
    outer = np.flatnonzero(is_op)
    outer = outer[host.ancestor_where(is_op, host.parent[outer]) < 0]
    joins = outer[timeline.named(_COLLATE_OP, Kind.CPU_OP)[outer]]
    spans = intervals(host.start_ns[joins], host.end_ns[joins])
    return total_ns(intersect(spans, timeline.steps.intervals))
