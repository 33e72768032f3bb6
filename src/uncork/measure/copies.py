"""Copies: what moves between host and device, from where in the program, how fast, and what it holds up."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.findings import Location
from uncork.intervals import Intervals, covered_ns
from uncork.ledger import counts_for
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.whereabouts import locate
from uncork.operators import WAIT_CALL
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]

MOST_SITES = 64
"""Sites kept, those that hold up most first."""
LEAST_RETURNED_BYTES = 64 << 10
"""Copies smaller than this are of equal size by chance: scalars, indices, flags."""
_DIRECTIONS = (
    ("HtoD", re.compile(r"HtoD|HostToDevice|Host ?-> ?Device", re.IGNORECASE)),
    ("DtoH", re.compile(r"DtoH|DeviceToHost|Device ?-> ?Host", re.IGNORECASE)),
)
_MEMORY = (("pageable", re.compile(r"Pageable", re.IGNORECASE)), ("pinned", re.compile(r"Pinned", re.IGNORECASE)))


@dataclass(frozen=True)
class Site:
    """One place of the program that copies one way; sums over all steps.

    Args:
        direction: ``HtoD``, ``DtoH``, or ``unknown`` where the recording does not tell.
        memory: ``pageable``, ``pinned``, or ``unknown`` where the recording does not tell.
        location: Operator, and module and line where known.
        count: Copies.
        bytes: Bytes moved; 0 where none of the copies says.
        copy_ns: Time the copies take on the device.
        exposed_ns: Part of it that the ledger gives to copies: no kernel covers it.
        host_ns: Time the host is held up in the copy calls and in the waits of the same operator.
    """

    direction: str
    memory: str
    location: Location
    count: int
    bytes: int
    copy_ns: int
    exposed_ns: int
    host_ns: int

    @property
    def bytes_per_s(self) -> float | None:
        """Return the bandwidth reached, or None where sizes are unknown."""
        return self.bytes / self.copy_ns * 1e9 if self.bytes and self.copy_ns else None


@dataclass(frozen=True, eq=False)
class Copies(Measurement):
    """Copies between host and device in the steps of one rank.

    Args:
        sites: By exposed time, the longest first.
        steps: Steps they were counted over.
        wall_ns: Time of these steps.
        returned_bytes: Bytes that go one way and come back the other within the same step, as copies of equal size.
        returned_ns: Device time of both ways of those.
    """

    table: ClassVar[str] = "copies"

    sites: tuple[Site, ...]
    steps: int
    wall_ns: int
    returned_bytes: int
    returned_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "Copies":
        """Return the copies of a rank; without device records nothing is known about copies."""
        timeline, ledger = rank.timeline, rank.ledger
        device, steps = timeline.device, timeline.steps
        if not len(device):
            raise MissingEvidence("device")
        step = timeline.device_step
        rows = np.flatnonzero((step >= 0) & counts_for(timeline, "copy"))
        names = timeline.events.names(device.row[rows])
        copies = _Rows(
            row=rows,
            direction=[_first(_DIRECTIONS, name) for name in names],
            memory=[_first(_MEMORY, name) for name in names],
            size_bytes=np.maximum(timeline.events.ints("bytes", missing=0)[device.row[rows]], 0),
            exposed_ns=_exposed_ns(timeline, rows, ledger.intervals["copy"]),
            host_ns=_host_ns(timeline, rows),
        )
        returned_bytes, returned_ns = _returned(copies, step[rows], device.dur_ns[rows])
        return cls(_sites(rank, copies), len(steps), int(steps.dur_ns.sum()), returned_bytes, returned_ns)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per site: figures per step, the bandwidth over all of them."""
        return [
            {
                "name": site.location.op or site.direction,
                "direction": site.direction,
                "host_memory": site.memory,
                "module": site.location.module,
                "file": site.location.file,
                "line": site.location.line,
                "function": site.location.function,
                "calls_per_step": site.count / self.steps,
                "size_bytes": site.bytes // self.steps or None,
                "bytes_per_s": site.bytes_per_s,
                "device_ns": site.copy_ns // self.steps,
                "step_share": site.copy_ns / self.wall_ns if self.wall_ns else None,
                "exposed_ns": site.exposed_ns // self.steps,
                "host_ns": site.host_ns // self.steps,
            }
            for site in self.sites
        ]

    def total(self, field: str, *, direction: str | None = None, memory: str | None = None) -> int:
        """Return the mean per step of a figure of the sites that go one way, from or to one kind of host memory."""
        wanted = [site for site in self.sites if direction in (None, site.direction) and memory in (None, site.memory)]
        return round(sum(int(getattr(site, field)) for site in wanted) / self.steps)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The single copies: `row` is the device slice of each; all have the same length."""

    row: IntArray
    direction: list[str]
    memory: list[str]
    size_bytes: IntArray
    exposed_ns: IntArray
    host_ns: IntArray


def _first(patterns: tuple[tuple[str, re.Pattern[str]], ...], name: str) -> str:
    return next((word for word, pattern in patterns if pattern.search(name)), "unknown")


def _exposed_ns(timeline: Timeline, rows: IntArray, exposed: Intervals) -> IntArray:
    """Return how much of the ledger's copy time each copy has; where copies overlap, the earlier has it."""
    device = timeline.device
    end = device.end_ns[rows]
    reach = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], end]))[:-1]
    return covered_ns(exposed, np.maximum(device.start_ns[rows], reach), end)


def _host_ns(timeline: Timeline, rows: IntArray) -> IntArray:
    """Return how long the host is held up by each copy: its call, and the waits of the operator around it.

    An operator with several copies gives its waits to the first of them.
    """
    host, launch = timeline.host, timeline.device.launch[rows]
    if not len(host):
        return np.zeros(len(rows), np.int64)
    held = np.where(launch >= 0, host.dur_ns[launch], 0)
    calls = timeline.named(WAIT_CALL, Kind.RUNTIME)
    waits = np.flatnonzero(calls & (host.parent >= 0))
    by_parent = np.bincount(host.parent[waits], host.dur_ns[waits], minlength=len(host)).astype(np.int64)
    parent = np.where(launch >= 0, host.parent[launch], -1)
    _, first = np.unique(parent, return_index=True)
    first = first[parent[first] >= 0]
    held[first] += by_parent[parent[first]]
    return held


def _returned(copies: _Rows, step: IntArray, dur_ns: IntArray) -> tuple[int, int]:
    """Return (bytes, time) of copies for which one of equal size goes the other way in the same step."""
    total_bytes = total_ns = 0
    ways: dict[str, dict[tuple[int, int], list[int]]] = {"HtoD": {}, "DtoH": {}, "unknown": {}}
    for place in np.flatnonzero(copies.size_bytes >= LEAST_RETURNED_BYTES):
        key = int(step[place]), int(copies.size_bytes[place])
        ways[copies.direction[place]].setdefault(key, []).append(int(dur_ns[place]))
    for key, down in ways["DtoH"].items():
        up = ways["HtoD"].get(key, [])
        pairs = min(len(up), len(down))
        total_bytes += pairs * key[1]
        total_ns += sum(up[:pairs]) + sum(down[:pairs])
    return total_bytes, total_ns


def _sites(rank: Rank, copies: _Rows) -> tuple[Site, ...]:
    """Return the copies summed by direction, memory and place."""
    duration = rank.timeline.device.dur_ns[copies.row]
    values = np.column_stack(
        [np.ones(len(duration), np.int64), copies.size_bytes, duration, copies.exposed_ns, copies.host_ns]
    )
    sums: dict[tuple[str, str, Location], IntArray] = {}
    for key, value in zip(
        zip(copies.direction, copies.memory, _places(rank, copies.row), strict=True), values, strict=True
    ):
        sums[key] = sums[key] + value if key in sums else value
    sites = [Site(*key, *map(int, total)) for key, total in sums.items()]
    sites.sort(key=lambda site: (-site.exposed_ns, -site.copy_ns, site.direction, str(site.location)))
    return tuple(sites[:MOST_SITES])


def _places(rank: Rank, rows: IntArray) -> list[Location]:
    """Return where each copy was asked for: its operator, and module and line where known."""
    ops = rank.timeline.launch_op[rows]
    used, back = np.unique(ops, return_inverse=True)
    known = [Location()] * int((used < 0).sum()) + locate(rank, used[used >= 0])
    return [known[place] for place in back.tolist()]
