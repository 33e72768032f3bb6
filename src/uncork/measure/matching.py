"""Over ranks: the n-th collective of a group on one rank is the n-th on every other; who waited, and for whom.

A rank that arrives early waits inside the collective, so the shortest duration over the ranks is the transfer, the
rest of each rank's duration is waiting, and the rank that waits least is the one that the others wait for. No
common clock is needed. Axes: matched collectives × ranks.
"""

import numpy as np
import numpy.typing as npt

from uncork.intervals import intervals
from uncork.measure import Ranks
from uncork.measure.collectives import UNMATCHED, Collectives
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]

_MOST_OFFSETS = 256
"""Recordings of one job begin within a step or two of each other."""


@dataclass(frozen=True, eq=False)
class Matched:
    """Collectives side by side.

    Args:
        name: Kind of each matched collective, length (matched,).
        bytes: Its size, -1 where unknown, int64 (matched,).
        group_size: Ranks of its group that are here, int64 (matched,).
        step: Step in which it starts on most ranks, -1 outside, int64 (matched,).
        dur_ns: Duration on each rank, -1 where the rank takes no part, int64 (matched, ranks).
        exposed_ns: The exposed part of it, int64 (matched, ranks).
        start_ns: Start on each rank's own clock, int64 (matched, ranks).
        unmatched: Collectives that have no partner in the recordings; messages between two ranks are none.
    """

    name: tuple[str, ...]
    bytes: IntArray
    group_size: IntArray
    step: IntArray
    dur_ns: IntArray
    exposed_ns: IntArray
    start_ns: IntArray
    unmatched: int

    def __len__(self) -> int:
        """Return the number of matched collectives."""
        return len(self.name)

    def within_steps(self) -> "Matched":
        """Return only those that start in a step; all of them where none does."""
        kept = self.step >= 0
        if not kept.any() or kept.all():
            return self
        names = tuple(name for name, keep in zip(self.name, kept, strict=True) if keep)
        return Matched(
            names,
            self.bytes[kept],
            self.group_size[kept],
            self.step[kept],
            self.dur_ns[kept],
            self.exposed_ns[kept],
            self.start_ns[kept],
            self.unmatched,
        )

    @property
    def transfer_ns(self) -> IntArray:
        """Return what moving the bytes takes: the shortest duration over the ranks, int64 (matched,)."""
        present = np.where(self.dur_ns >= 0, self.dur_ns, np.iinfo(np.int64).max)
        return present.min(axis=1) if len(self) else np.empty(0, np.int64)

    @property
    def wait_ns(self) -> IntArray:
        """Return each rank's wait for the last to arrive, int64 (matched, ranks)."""
        return np.maximum(np.where(self.dur_ns >= 0, self.dur_ns - self.transfer_ns[:, None], 0), 0)

    @property
    def steps(self) -> IntArray:
        """Return the steps in which matched collectives start, int64 (steps,)."""
        return np.unique(self.step)

    def waited_ns(self) -> IntArray:
        """Return how long each rank does nothing but wait for others in each of `steps`, int64 (ranks, steps).

        Collectives that wait at the same time on several streams or threads count once.
        """
        steps, back = np.unique(self.step, return_inverse=True)
        wait = np.minimum(self.wait_ns, self.exposed_ns)
        waited = np.zeros((wait.shape[1], len(steps)), np.int64)
        for column in range(wait.shape[1]):
            present = self.dur_ns[:, column] >= 0
            begun_ns = self.start_ns[present, column].min(initial=np.iinfo(np.int64).max)
            start = np.where(present, self.start_ns[:, column] - begun_ns, 0)
            span = int((start + wait[:, column]).max(initial=0)) + 1
            # One copy of the clock per step keeps the steps apart in one union.
            merged = intervals(start + back * span, start + back * span + wait[:, column])
            waited[column] = np.bincount(merged[:, 0] // span, merged[:, 1] - merged[:, 0], minlength=len(steps))
        return waited


def match(ranks: Ranks[Collectives]) -> Matched:
    """Return the collectives of all ranks side by side, in order per group and kind."""
    places: dict[tuple[str, str], dict[int, IntArray]] = {}
    for column, one in enumerate(ranks):
        key = one.group * max(len(one.names), 1) + one.name
        for code in np.unique(key):
            group, spoken = divmod(int(code), max(len(one.names), 1))
            where = (one.groups[group], one.names[spoken])
            places.setdefault(where, {})[column] = np.flatnonzero(key == code)
    names: list[str] = []
    blocks: list[tuple[IntArray, ...]] = []
    unmatched = 0
    for (_, name), found in places.items():
        count = min(len(rows) for rows in found.values())
        if name in UNMATCHED:
            continue
        if len(found) < 2:
            unmatched += sum(len(rows) for rows in found.values())
            continue
        unmatched += sum(len(rows) - count for rows in found.values())
        blocks.append(_side_by_side(ranks, _aligned(ranks, found, count), count))
        names += [name] * len(blocks[-1][0])
    if not blocks:
        none, flat = np.empty((0, len(ranks)), np.int64), np.empty(0, np.int64)
        return Matched((), flat, flat, flat, none, none, none, unmatched)
    size, group_size, step, dur, exposed, start = (np.concatenate(column) for column in zip(*blocks, strict=True))
    return Matched(tuple(names), size, group_size, step, dur, exposed, start, unmatched)


def _aligned(ranks: Ranks[Collectives], found: dict[int, IntArray], count: int) -> dict[int, IntArray]:
    """Return as many collectives of each rank as the shortest recording has, from where they end together.

    Recordings begin and end at different moments; a collective ends on all its ranks at once, so the right offset is
    the one at which the differences between the ends vary least, whatever the clocks say.
    """
    reference = next(column for column, rows in found.items() if len(rows) == count)
    ends = ranks[reference].start_ns[found[reference]] + ranks[reference].dur_ns[found[reference]]
    aligned: dict[int, IntArray] = {}
    for column, rows in found.items():
        end = ranks[column].start_ns[rows] + ranks[column].dur_ns[rows]
        first = first_alike(end, ends)
        aligned[column] = rows[first : first + count]
    return aligned


def first_alike(times_ns: IntArray, reference_ns: IntArray) -> int:
    """Return from where on times differ from fewer or as many reference times by an amount that varies least."""
    count = len(reference_ns)
    offsets = range(min(len(times_ns) - count, _MOST_OFFSETS) + 1)
    if len(offsets) == 1:
        return 0
    spread = [
        float(np.std((times_ns[offset : offset + count] - reference_ns).astype(np.float64))) for offset in offsets
    ]
    return int(np.argmin(spread))


def _side_by_side(ranks: Ranks[Collectives], found: dict[int, IntArray], count: int) -> tuple[IntArray, ...]:
    """Return (bytes, group size, step, durations, exposed parts, starts) of one group's collectives of one kind."""
    size, step = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    dur, exposed, start = (np.full((count, len(ranks)), fill, np.int64) for fill in (-1, 0, 0))
    for column, rows in found.items():
        one = ranks[column]
        dur[:, column], exposed[:, column] = one.dur_ns[rows], one.exposed_ns[rows]
        start[:, column] = one.start_ns[rows]
        size, step = np.maximum(size, one.bytes[rows]), np.maximum(step, one.step[rows])
    return size, np.full(count, len(found), np.int64), step, dur, exposed, start
