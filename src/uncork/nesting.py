"""Who nests in whom: the spans of host threads as nested slices."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from uncork.events import EventTable, Kind, among
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_MOST_CLIP_ROUNDS = 16


@dataclass(frozen=True, eq=False)
class HostSlices:
    """Spans on host threads, sorted by (track, start, longest first); all arrays have shape (slices,).

    Args:
        row: Row in the event table.
        kind: `Kind` codes.
        name: Index of the name in the table's strings.
        track: Index of the thread in the table's tracks.
        start_ns: Start.
        end_ns: End, cut to the parent's end where a broken recording lets a child outlive its parent.
        parent: Index of the enclosing slice in these arrays, -1 for none.
        depth: Number of enclosing slices.
        self_ns: Duration without the children's.
        clipped: How many slices had to be cut.
    """

    row: IntArray
    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    track: IntArray
    start_ns: IntArray
    end_ns: IntArray
    parent: IntArray
    depth: IntArray
    self_ns: IntArray
    clipped: int

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self.row)

    @property
    def dur_ns(self) -> IntArray:
        """Return the durations."""
        return self.end_ns - self.start_ns

    def of_kind(self, *kinds: Kind) -> BoolArray:
        """Return for each slice whether it is of one of the kinds."""
        return among(self.kind, kinds)

    def enclosed(self) -> IntArray:
        """Return how many slices each one encloses, at any depth, int64 (slices,)."""
        if not len(self):
            return np.empty(0, np.int64)
        origin = int(self.start_ns.min())
        base = (self.track - self.track.min()) * (int(self.end_ns.max()) - origin + 2) - origin
        after = np.searchsorted(self.start_ns + base, self.end_ns + base, side="left")
        enclosed: IntArray = np.maximum(after - np.arange(len(self)) - 1, 0)
        return enclosed

    def innermost(self, track: npt.ArrayLike, when_ns: npt.ArrayLike) -> IntArray:
        """Return for each (track, moment) the deepest slice open then, -1 where there is none."""
        when = np.asarray(when_ns, np.int64)
        place = last_begun(self.track, self.start_ns, np.broadcast_to(track, when.shape), when)
        over = np.flatnonzero(place >= 0)
        while len(over := over[self.end_ns[place[over]] <= when[over]]):
            place[over] = self.parent[place[over]]
            over = over[place[over] >= 0]
        return place

    def ancestor_where(self, wanted: BoolArray, of: npt.ArrayLike) -> IntArray:
        """Return for each slice in `of` itself or the nearest enclosing slice for which `wanted` holds, else -1.

        Args:
            wanted: Shape (slices,).
            of: Indices of slices; -1 stays -1.
        """
        place = np.array(of, np.int64)
        if not wanted.any():
            return np.full_like(place, -1)
        climb = np.flatnonzero(place >= 0)
        while len(climb := climb[~wanted[place[climb]]]):
            place[climb] = self.parent[place[climb]]
            climb = climb[place[climb] >= 0]
        return place


def nest(table: EventTable, rows: IntArray) -> HostSlices:
    """Return the rows of a table as nested slices.

    Ties are ordered as Kineto nests them: longer first, then by ``Ev Idx``, then as in the file.
    """
    rows, start, end, track = _leave_frames(table, rows[table.dur_ns[rows] >= 0])
    parent, depth, clipped = np.empty(0, np.int64), np.empty(0, np.int64), 0
    for _ in range(_MOST_CLIP_ROUNDS):
        parent, depth = _levels(track, start, end)
        # One that only begins after its parent's end is no child, as the next round sees once the others are cut.
        over = np.flatnonzero((parent >= 0) & (end > end[parent]) & (start < end[parent]))
        if not len(over):
            break
        clipped += len(over)
        end[over] = end[parent[over]]
    dur = end - start
    inner = parent >= 0
    children = np.bincount(parent[inner], dur[inner], minlength=len(rows)).astype(np.int64)
    own = np.maximum(dur - children, 0)
    return HostSlices(rows, table.kind[rows], table.name[rows], track, start, end, parent, depth, own, clipped)


def _leave_frames(table: EventTable, rows: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return (rows, start, end, track) in order, regions that a ``with`` opens begun where its ``__enter__`` ends.

    Such a region starts inside the frames of ``__enter__`` and outlives them; cut to their end it would be empty.
    """
    start, end, track = table.ts_ns[rows], table.end_ns[rows], table.track[rows].astype(np.int64)
    index, kind = table.ints("Ev Idx")[rows], table.kind[rows]
    frames = np.flatnonzero(kind == Kind.PYTHON_FUNCTION)
    frames = frames[_order(index[frames], end[frames], start[frames], track[frames])]
    regions = np.flatnonzero((kind == Kind.CPU_OP) | (kind == Kind.USER_ANNOTATION))
    if len(frames) and len(regions):
        start[regions] = _after_frames(
            (start[regions], end[regions], track[regions]), (start[frames], end[frames], track[frames])
        )
    order = _order(index, end, start, track)
    return rows[order], start[order], end[order], track[order]


def _order(index: IntArray, end: IntArray, start: IntArray, track: IntArray) -> IntArray:
    """Return the order by track, start, longest first, index: sorted once by start, the rest only among equals."""
    order = np.argsort(start, kind="stable")
    # Few distinct small numbers: numpy sorts 16 bits by radix.
    small = track.astype(np.int16) if track.max(initial=0) < 1 << 15 else track
    order = order[np.argsort(small[order], kind="stable")]
    begin, thread = start[order], track[order]
    same = (begin[1:] == begin[:-1]) & (thread[1:] == thread[:-1])
    if same.any():
        tied = np.append(same, False) | np.insert(same, 0, False)
        group = np.cumsum(~np.insert(same, 0, False))[tied]
        rows = order[tied]
        order[tied] = rows[np.lexsort((index[rows], -end[rows], group))]
    return order


def last_begun(
    track: IntArray, start_ns: IntArray, tracks: IntArray, when_ns: IntArray, side: Literal["left", "right"] = "right"
) -> IntArray:
    """Return for each (track, moment) the last slice of the track that has begun by then, -1 where there is none.

    Args:
        track: Of the slices, in order of (track, start).
        start_ns: Likewise.
        tracks: Of the questions.
        when_ns: Of the questions.
        side: ``left`` where a slice that begins at the moment itself does not count.
    """
    found = np.full(len(when_ns), -1, np.int64)
    if not len(track) or not len(when_ns):
        return found
    asked = [np.arange(len(tracks))] if (tracks == tracks[0]).all() else _by_track(tracks)
    for rows in asked:
        first, last = np.searchsorted(track, [tracks[rows[0]], tracks[rows[0]] + 1])
        place = first + np.searchsorted(start_ns[first:last], when_ns[rows], side=side) - 1
        found[rows] = np.where(place < first, -1, place)
    return found


def _by_track(tracks: IntArray) -> list[IntArray]:
    """Return the rows of each track."""
    order = np.argsort(tracks, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(tracks[order])) + 1)


def _after_frames(
    regions: tuple[IntArray, IntArray, IntArray], frames: tuple[IntArray, IntArray, IntArray]
) -> IntArray:
    """Return where regions start: those that outlive the frames they start in, at the end of the last such frame.

    Args:
        regions: Starts, ends and tracks, in any order.
        frames: Likewise, in order.
    """
    (start, end, track), (opened, closed, thread) = regions, frames
    begins = start.copy()
    parent, _ = _levels(thread, opened, closed)
    inside = last_begun(thread, opened, track, start, side="left")
    while True:
        # Frames that ended before, then those that the region outlives: each step goes one frame outwards.
        at = np.flatnonzero(inside >= 0)
        limit = closed[inside[at]]
        over = limit <= start[at]
        # More after the frame than in it: rounded microseconds alone make an operator outlive its frame by a little.
        leaves = ~over & (end[at] > limit) & (end[at] - limit > limit - begins[at])
        begins[at[leaves]] = limit[leaves]
        inside[at[~over & ~leaves]] = -1
        if not (over | leaves).any():
            return begins
        moved = at[over | leaves]
        inside[moved] = parent[inside[moved]]


def portable_levels(track: IntArray, start_ns: IntArray, end_ns: IntArray) -> tuple[IntArray, IntArray]:
    """Return (parent, depth) of sorted slices: depth is how many earlier ones of the track are still open.

    The parent is the last earlier slice one level up.
    """
    count = len(start_ns)
    if not count:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    origin = int(start_ns.min())
    span = int(max(end_ns.max(), start_ns.max()) - origin) + 2
    base = (track - track.min()) * span - origin
    # A slice without length still encloses nothing and ends after it began.
    opened, closed = start_ns + base, np.maximum(end_ns, start_ns + 1) + base
    index = np.arange(count)
    depth = np.maximum(index - np.searchsorted(np.sort(closed), opened, side="right"), 0)
    key = np.sort(depth * count + index)
    place = np.searchsorted(key, (depth - 1) * count + index, side="right") - 1
    parent = key[place] % count
    none = (depth == 0) | (key[place] // count != depth - 1) | (track[parent] != track)
    parent[none] = -1
    return parent, depth


try:
    from uncork.levels import levels as _levels
except ImportError:
    _levels = portable_levels
