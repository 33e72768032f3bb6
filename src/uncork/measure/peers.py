"""Peers of sends and receives: which rank a message goes to or comes from, as far as a recording says."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from uncork.events import EventTable, Kind

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_SPOKEN = re.compile(r"\b(?P<way>send|recv) \d+(?:->|<-)(?P<peer>\d{1,6})$")
"""torch 2.1 and later write ``nccl:send 0->1`` and ``nccl:recv 1<-0``, numbers within the group."""
_OPERATOR = re.compile(r"^c10d::(send|recv_)$")
_PEER_INPUT = 2
"""``c10d::send`` and ``c10d::recv_`` take tensors, group, peer within the group, tag."""


def peers_on_device(
    table: EventTable, facts: IntArray, spoken: IntArray, groups: Iterable[Sequence[int]]
) -> tuple[IntArray, BoolArray]:
    """Return (peer, whether it sends) of kernels, -1 where nothing says; several messages in one kernel have none.

    Args:
        table: The events.
        facts: Row with each kernel's message facts.
        spoken: Row of the region, or else the kernel, that names it.
        groups: Ranks of each process group.
    """
    told = table.texts("Collective name")[facts]
    way = np.array([table.strings.text(int(one)) if one >= 0 else "" for one in told])
    sends, takes = way == "send", way == "recv"
    peer = np.where(sends, table.ints("Dst Rank")[facts], np.where(takes, table.ints("Src Rank")[facts], -1))
    named = [_SPOKEN.search(name) for name in table.names(spoken)]
    if _numbered_alike(groups):
        within = np.array([int(one["peer"]) if one else -1 for one in named], np.int64)
        peer = np.where(peer < 0, within, peer)
    says_send = np.array([one is not None and one["way"] == "send" for one in named], bool)
    return peer, sends | (says_send & ~takes)


def peers_on_host(
    table: EventTable, rows: IntArray, groups: Iterable[Sequence[int]]
) -> tuple[IntArray, BoolArray, IntArray]:
    """Return (peer, whether it sends, start) of a CPU backend's regions; the peer is -1 where nothing says.

    The region lasts until the message has passed, but gloo opens it only when a message is on its way already. The
    operator around its start knows when that began and, where shapes were recorded, the peer.
    """
    sent = np.array([name.endswith(":send") for name in table.names(rows)], bool)
    peer, start = np.full(len(rows), -1, np.int64), table.ts_ns[rows].copy()
    operators = np.flatnonzero(table.name_is(_OPERATOR, Kind.CPU_OP))
    operators = operators[np.argsort(table.ts_ns[operators], kind="stable")]
    inputs = table.texts("Concrete Inputs")[operators] if _numbered_alike(groups) else np.full(len(operators), -1)
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


def _numbered_alike(groups: Iterable[Sequence[int]]) -> bool:
    """Return whether a number within any group is the rank itself."""
    return all(tuple(ranks) == tuple(range(len(ranks))) for ranks in groups)
