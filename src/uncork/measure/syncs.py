"""Syncs: where the host stops until the device is done, and what the stop costs the device afterwards."""

import re

import numpy as np
import numpy.typing as npt

from uncork.driving import on_driving_tracks
from uncork.events import Kind
from uncork.findings import Location
from uncork.intervals import complement, contains, covered_ns
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.whereabouts import locate
from uncork.operators import ATEN, COPY_CALL, WAIT_CALL
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

READS_BACK = re.compile(
    r"^aten::(_local_scalar_dense|item|is_nonzero|nonzero|masked_select|unique\w*|_unique2|equal|allclose|bincount|index)$"
)
"""Operators whose result the host needs before it can go on."""
_ON_STREAM = re.compile("StreamWait")
"""Such waits stop a stream, not the host."""
MOST_SITES = 32


@dataclass(frozen=True)
class SyncSite:
    """One place of the program that waits for the device.

    Args:
        op: The outermost operator that asks for it (``aten::item``), else the runtime call.
        location: The user's frame around it, where known.
        calls: Waits per step.
        wait_ns: Time per step the host spends in them.
        idle_ns: Time per step in which the device idles from the wait's start until it gets new work.
        refill_ns: Part of that after the wait: the queue has to be filled again. Nothing where the device idled already
            when the wait began.
    """

    op: str
    location: Location
    calls: float
    wait_ns: int
    idle_ns: int
    refill_ns: int


@dataclass(frozen=True)
class Syncs(Measurement):
    """Waits of the host for the device, outside the loader.

    Args:
        sites: By idle time, the largest first.
    """

    sites: tuple[SyncSite, ...]

    @classmethod
    def of(cls, rank: Rank) -> "Syncs":
        """Return the waits of a rank; without device records or runtime calls they cannot be told from work."""
        timeline = rank.timeline
        if not len(timeline.device):
            raise MissingEvidence("device")
        host = timeline.host
        calls = host.kind == Kind.RUNTIME
        if not calls.any():
            raise MissingEvidence("runtime")
        driving = on_driving_tracks(timeline)
        places = np.flatnonzero(driving & _blocks(timeline))
        kept = timeline.steps.at(host.start_ns[places]) >= 0
        # The profiler itself waits for the device when it stops: after the last operator.
        ops = host.start_ns[host.kind == Kind.CPU_OP]
        kept &= host.start_ns[places] < (ops.max() if len(ops) else 0)
        return cls(tuple(_sites(rank, places[kept])[:MOST_SITES]))

    def total(self, field: str) -> int:
        """Return the sum over all places of one of their figures."""
        return sum(int(getattr(site, field)) for site in self.sites)


def _blocks(timeline: Timeline) -> BoolArray:
    """Return which host slices are runtime calls that stop the host: waits, and copies that must have arrived."""
    host = timeline.host
    waits = timeline.named(WAIT_CALL, Kind.RUNTIME) & ~timeline.named(_ON_STREAM, Kind.RUNTIME)
    copies = timeline.named(COPY_CALL, Kind.RUNTIME)
    reads = timeline.named(READS_BACK, Kind.CPU_OP)
    copies = copies & (host.ancestor_where(reads, np.where(copies, np.arange(len(host)), -1)) >= 0)
    blocking: BoolArray = (waits | copies) & ~_under_loader(timeline)
    return blocking


def _under_loader(timeline: Timeline) -> BoolArray:
    host, waits = timeline.host, timeline.loader_waits
    inside: BoolArray = covered_ns(waits, host.start_ns, host.start_ns + 1) > 0
    return inside


def _sites(rank: Rank, places: IntArray) -> list[SyncSite]:
    """Return the waits by operator and line."""
    timeline = rank.timeline
    host, device, steps = timeline.host, timeline.device, max(len(timeline.steps), 1)
    if not len(places):
        return []
    idle = complement(timeline.device_busy, int(timeline.steps.start_ns[0]), int(timeline.steps.end_ns[-1]))
    start, end = host.start_ns[places], host.end_ns[places]
    later = np.searchsorted(device.start_ns, end, side="left")
    # Where no work follows, the wait is the end of it all and holds nothing up.
    last = np.append(device.start_ns, np.iinfo(np.int64).min)[later]
    # Several waits before the next kernel share one gap: each has the part up to the next wait.
    order = np.argsort(start, kind="stable")
    after = np.append(start[order][1:], np.iinfo(np.int64).max)
    until = np.empty_like(last)
    until[order] = np.maximum(np.minimum(last[order], after), end[order])
    owner = _owners(timeline, places)
    # A wait for a device that had nothing to do anyway empties no queue.
    drained = contains(timeline.device_busy, host.start_ns[owner])
    waited = covered_ns(idle, start, end)
    refill = np.where(drained, covered_ns(idle, end, until), 0)
    sums: dict[Location, list[int]] = {}
    for index, key in enumerate(locate(rank, owner)):
        total = sums.setdefault(key, [0, 0, 0, 0])
        for field, value in enumerate((1, host.dur_ns[places[index]], waited[index], refill[index])):
            total[field] += int(value)
    sites = [
        SyncSite(place.op or "", place, count / steps, wait // steps, (idle_ns + fill) // steps, fill // steps)
        for place, (count, wait, idle_ns, fill) in sums.items()
    ]
    return sorted(sites, key=lambda site: (-site.idle_ns, -site.wait_ns, site.op))


def _owners(timeline: Timeline, places: IntArray) -> IntArray:
    """Return the outermost operator that each wait belongs to; the call itself where none is around it."""
    host = timeline.host
    is_op = timeline.named(ATEN, Kind.CPU_OP)
    op = host.ancestor_where(is_op, places)
    while True:
        above = host.ancestor_where(is_op, np.where(op >= 0, host.parent[op], -1))
        if not (above >= 0).any():
            return np.where(op >= 0, op, places)
        op = np.where(above >= 0, above, op)
