"""Messages: what a rank sends to one other rank or takes from it, when, and whether anything else works meanwhile."""

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.intervals import Intervals, intersect, intervals
from uncork.measure import Measurement, Rank
from uncork.measure.collectives import UNMATCHED, Collectives, event_rows, rows_of
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_SPOKEN = re.compile(r"\b(?P<way>send|recv) \d+(?:->|<-)(?P<peer>\d{1,6})$")
"""torch 2.1 and later name regions ``nccl:send 0->1`` and ``nccl:recv 1<-0``, numbers within the group."""
_OPERATOR = re.compile(r"^c10d::(send|recv_)$")
_PEER_INPUT = 2
"""``c10d::send`` and ``c10d::recv_`` take tensors, group, peer within the group, tag."""


@dataclass(frozen=True, eq=False)
class Messages(Measurement):
    """The messages of a rank in order of their calls; arrays have shape (messages,).

    Args:
        peer: Rank that it goes to or comes from.
        sent: Whether this rank sends it.
        start_ns: From when this rank is there for it, on its own clock.
        end_ns: When it has passed.
        inside: Whether it starts in a step; all do where no step is marked.
        alone_ns: When messages pass and nothing else works, merged intervals on the rank's own clock.
        unknown: Sends and receives of which the recording does not say with whom.
    """

    peer: IntArray
    sent: BoolArray
    start_ns: IntArray
    end_ns: IntArray
    inside: BoolArray
    alone_ns: Intervals
    unknown: int

    @classmethod
    def of(cls, rank: Rank) -> "Messages":
        """Return the messages of a rank; raises `MissingEvidence` where it has no collectives at all."""
        found, timeline = rank.made(Collectives), rank.timeline
        mine = np.flatnonzero(np.array([name in UNMATCHED for name in found.names], bool)[found.name])
        alike = all(tuple(ranks) == tuple(range(len(ranks))) for ranks in rank.recording.groups.values())
        start_ns, end_ns = found.start_ns[mine], found.start_ns[mine] + found.dur_ns[mine]
        rows = rows_of(timeline)[mine]
        if len(timeline.device):
            place, peer, sent = _of_kernels(timeline, rows, alike=alike)
        else:
            place, (peer, sent, start_ns) = np.arange(len(rows)), _of_regions(timeline, rows)
            if rank.deep is not timeline:
                peer = _as_in(rank.deep, timeline, peer, sent, start_ns)
            peer = peer if alike else np.full(len(peer), -1, np.int64)
        inside = found.step[mine] >= 0
        known = peer >= 0
        place = place[known]
        return cls(
            peer=peer[known],
            sent=sent[known],
            start_ns=start_ns[place],
            end_ns=end_ns[place],
            inside=inside[place] if inside.any() else np.ones(len(place), bool),
            alone_ns=intersect(
                rank.ledger.intervals.get("comm", np.empty((0, 2), np.int64)), intervals(start_ns, end_ns)
            ),
            unknown=len(np.setdiff1d(np.arange(len(mine)), place)),
        )

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.peer)


def _of_kernels(timeline: Timeline, rows: IntArray, *, alike: bool) -> tuple[IntArray, IntArray, BoolArray]:
    """Return (place of the kernel, peer, whether sent) of the messages that kernels pass, in order of the calls.

    A call's own record surrounds the launch of its kernel; calls that are gathered (``batch_isend_irecv``) come
    before the launch of one kernel for all of them.
    """
    table, device, host = timeline.events, timeline.device, timeline.host
    launch = device.launch[rows]
    calls = timeline.named("record_param_comms", Kind.CPU_OP, Kind.USER_ANNOTATION)
    around = host.ancestor_where(calls, launch)
    loose = np.setdiff1d(np.flatnonzero(calls), around)
    kernel, call = [np.arange(len(rows))], [around]
    for track in np.unique(host.track[loose]):
        later = np.flatnonzero((launch >= 0) & (around < 0) & (host.track[launch] == track))
        later = later[np.argsort(host.start_ns[launch[later]], kind="stable")]
        gathered = loose[host.track[loose] == track]
        next_one = np.searchsorted(host.start_ns[launch[later]], host.start_ns[gathered])
        kernel.append(later[next_one[next_one < len(later)]])
        call.append(gathered[next_one < len(later)])
    place, caller = np.concatenate(kernel), np.concatenate(call)
    facts = np.where(caller >= 0, event_rows(timeline, caller), device.row[rows[place]])
    peer, sent = _told(timeline, facts)
    region = host.ancestor_where(timeline.named(_SPOKEN, Kind.CPU_OP, Kind.USER_ANNOTATION), launch)[place]
    for index in np.flatnonzero((peer < 0) & (region >= 0) & alike):
        said = _SPOKEN.search(table.names(host.row[region[index : index + 1]])[0])
        if said:
            peer[index], sent[index] = int(said["peer"]), said["way"] == "send"
    order = np.lexsort((facts, place))
    return place[order], peer[order], sent[order]


def _told(timeline: Timeline, facts: IntArray) -> tuple[IntArray, BoolArray]:
    """Return (peer, whether sent) as records of messages say, -1 for what is none."""
    table = timeline.events
    ways = [table.strings.text(int(one)) if one >= 0 else "" for one in table.texts("Collective name")[facts]]
    sends, takes = np.array([way == "send" for way in ways], bool), np.array([way == "recv" for way in ways], bool)
    peer = np.where(sends, table.ints("Dst Rank")[facts], np.where(takes, table.ints("Src Rank")[facts], -1))
    return peer, sends


def _of_regions(timeline: Timeline, rows: IntArray) -> tuple[IntArray, BoolArray, IntArray]:
    """Return (peer, whether sent, start) of a CPU backend's regions; the peer is -1 where nothing says.

    The region lasts until the message has passed, but gloo opens it only when a message is on its way already. The
    operator around its start knows when that began and, where shapes were recorded, the peer.
    """
    table = timeline.events
    sent = np.array([name.endswith(":send") for name in table.names(rows)], bool)
    peer, start = np.full(len(rows), -1, np.int64), table.ts_ns[rows].copy()
    operators = np.flatnonzero(table.name_is(_OPERATOR, Kind.CPU_OP))
    operators = operators[np.argsort(table.ts_ns[operators], kind="stable")]
    inputs = table.texts("Concrete Inputs")[operators]
    told = np.array([_peer(table.strings.value(int(one))) if one >= 0 else -1 for one in inputs], np.int64)
    begun, over = table.ts_ns[operators], table.end_ns[operators]
    for track in np.unique(table.track[operators]):
        mine, here = np.flatnonzero(table.track[rows] == track), np.flatnonzero(table.track[operators] == track)
        last = here[np.maximum(np.searchsorted(begun[here], start[mine], side="right") - 1, 0)]
        around = (begun[last] <= start[mine]) & (start[mine] <= over[last])
        peer[mine] = np.where(around, told[last], -1)
        start[mine] = np.where(around, begun[last], start[mine])
    return peer, sent, start


def _peer(inputs: object) -> int:
    """Return the peer among an operator's recorded inputs, -1 where they are no such list."""
    told = inputs[_PEER_INPUT] if isinstance(inputs, list) and len(inputs) > _PEER_INPUT else None
    return int(told) if isinstance(told, str) and told.isdecimal() and len(told) < 7 else -1


def _as_in(deep: Timeline, timeline: Timeline, peer: IntArray, sent: BoolArray, start_ns: IntArray) -> IntArray:
    """Return peers with those that another window knows, of steps that send and take in the same order."""
    rows = rows_of(deep)
    spoken = deep.events.names(rows)
    rows = rows[np.array([name.endswith((":send", ":recv")) for name in spoken], bool)]
    known, ways, starts = _of_regions(deep, rows)
    told: dict[bytes, IntArray] = {}
    for way, places in _by_step(deep, ways, starts):
        before = told.setdefault(way, known[places])
        told[way] = np.where(before == known[places], before, -1)  # steps that take turns tell nothing
    filled = peer.copy()
    for way, places in _by_step(timeline, sent, start_ns):
        if way in told:
            filled[places] = np.where(peer[places] < 0, told[way], peer[places])
    return filled


def _by_step(timeline: Timeline, sent: BoolArray, start_ns: IntArray) -> Iterator[tuple[bytes, IntArray]]:
    """Yield which way each step's messages go, and their places."""
    step = timeline.steps.at(start_ns)
    for number in range(len(timeline.steps)):
        places = np.flatnonzero(step == number)
        yield sent[places].tobytes(), places
