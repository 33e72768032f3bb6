"""Sets of half-open intervals in integer nanoseconds.

Every set is an int64 array of shape (n, 2): rows ``[start_ns, end_ns)``. A *merged* set is sorted and its rows
neither touch nor overlap; every function here returns merged sets and, but for `union`, expects them.
"""

import numpy as np
import numpy.typing as npt

Intervals = npt.NDArray[np.int64]
NsArray = npt.NDArray[np.int64]

EMPTY: Intervals = np.empty((0, 2), np.int64)


def intervals(start_ns: npt.ArrayLike, end_ns: npt.ArrayLike) -> Intervals:
    """Return the merged set of intervals given by their starts and ends; empty and negative ones are dropped."""
    start, end = np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64)
    kept = np.flatnonzero(end > start)
    if len(kept) < len(start):
        start, end = start[kept], end[kept]
    if not len(start):
        return EMPTY
    if not (start[1:] >= start[:-1]).all():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    apart = np.flatnonzero(start[1:] > reach[:-1])
    return np.column_stack([start[np.insert(apart + 1, 0, 0)], reach[np.append(apart, len(reach) - 1)]])


def union(*sets: Intervals) -> Intervals:
    """Return the merged union of sets whose rows may overlap and be in any order."""
    rows = np.concatenate(sets) if sets else EMPTY
    return intervals(rows[:, 0], rows[:, 1])


def intersect(left: Intervals, right: Intervals) -> Intervals:
    """Return the time that lies in both merged sets."""
    if not len(left) or not len(right):
        return EMPTY
    # For each row of `left`, the rows of `right` that reach into it are one contiguous run.
    first = np.searchsorted(right[:, 1], left[:, 0], side="right")
    last = np.searchsorted(right[:, 0], left[:, 1], side="left")
    count = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(left)), count)
    offset = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    cols = np.repeat(first, count) + offset
    start = np.maximum(left[rows, 0], right[cols, 0])
    end = np.minimum(left[rows, 1], right[cols, 1])
    return np.column_stack([start, end])


def complement(merged: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """Return the gaps of a merged set within ``[start_ns, end_ns)``."""
    inside = clip(merged, start_ns, end_ns)
    starts = np.concatenate([[start_ns], inside[:, 1]])
    ends = np.concatenate([inside[:, 0], [end_ns]])
    keep = ends > starts
    return np.column_stack([starts[keep], ends[keep]]).astype(np.int64)


def subtract(left: Intervals, right: Intervals) -> Intervals:
    """Return the time of the first merged set that does not lie in the second."""
    if not len(left) or not len(right):
        return left
    gaps = complement(right, int(min(left[0, 0], right[0, 0])), int(max(left[-1, 1], right[-1, 1])))
    return intersect(left, gaps)


def clip(merged: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """Return the part of a merged set within ``[start_ns, end_ns)``."""
    if end_ns <= start_ns:
        return EMPTY
    return intersect(merged, np.array([[start_ns, end_ns]], np.int64))


def total_ns(merged: Intervals) -> int:
    """Return the summed length of a merged set."""
    return int((merged[:, 1] - merged[:, 0]).sum())


def covered_ns(merged: Intervals, start_ns: npt.ArrayLike, end_ns: npt.ArrayLike) -> NsArray:
    """Return how much of each ``[start_ns, end_ns)`` a merged set covers.

    Args:
        merged: The covering set.
        start_ns: Starts of the queries, shape (queries,).
        end_ns: Ends of the queries, shape (queries,).
    """
    starts, ends = np.asarray(start_ns, np.int64), np.asarray(end_ns, np.int64)
    if not len(merged):
        return np.zeros(starts.shape, np.int64)
    before = np.concatenate([[0], np.cumsum(merged[:, 1] - merged[:, 0])])

    def up_to(when: NsArray) -> NsArray:
        row = np.searchsorted(merged[:, 0], when, side="right") - 1
        part = np.clip(when - merged[np.maximum(row, 0), 0], 0, None)
        inside = np.minimum(part, (merged[:, 1] - merged[:, 0])[np.maximum(row, 0)])
        return np.where(row < 0, 0, before[np.maximum(row, 0)] + inside)

    return np.where(ends > starts, up_to(ends) - up_to(starts), 0).astype(np.int64)


def contains(merged: Intervals, when_ns: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return for each moment whether it lies in a merged set."""
    when = np.asarray(when_ns, np.int64)
    if not len(merged):
        return np.zeros(when.shape, bool)
    passed = np.searchsorted(merged.ravel(), when, side="right")  # starts and ends, in turn
    inside: npt.NDArray[np.bool_] = passed % 2 == 1
    return inside


def moments(*times_ns: NsArray) -> NsArray:
    """Return the distinct moments of some arrays, in order; `numpy.unique` hashes, which takes far longer here."""
    ordered = np.sort(np.concatenate(times_ns))
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
