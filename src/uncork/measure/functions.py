"""Functions: Python functions by time, the user's own told apart, from cProfile or from a trace's frames."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from uncork.calltree import MODULE_NAME
from uncork.events import IntArray, Kind
from uncork.frames import is_users, is_users_frame, split_frame
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.recording import FunctionTable
from uncork.records import dataclass

MOST_FUNCTIONS = 100
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Kineto names built-in methods by the object they belong to; its address says nothing."""


@dataclass(frozen=True)
class Function:
    """A Python function.

    Args:
        name: Its name.
        file: Source file; ``~`` or empty for built-ins.
        line: Its first line.
        calls: Calls while it was watched.
        self_ns: Time in itself, in all.
        total_ns: Time with what it calls, in all; a function that calls itself counts once.
        users: Whether it is the user's own code.
    """

    name: str
    file: str
    line: int
    calls: int
    self_ns: int
    total_ns: int
    users: bool


@dataclass(frozen=True)
class Functions(Measurement):
    """The Python functions that take most time.

    Args:
        functions: By self time, largest first; the user's own by total time are always among them.
        source: ``cprofile``, or ``trace`` where frames of a trace stand in for it.
    """

    functions: tuple[Function, ...]
    source: str
    table: ClassVar[str] = "functions"

    @classmethod
    def of(cls, rank: Rank) -> "Functions":
        """Return the functions of a rank; without cProfile and frames there are none."""
        table = rank.recording.functions
        found = _of_profile(table) if table is not None else _of_frames(rank)
        if not found:
            raise MissingEvidence("functions")
        by_self = sorted(found, key=lambda one: (-one.self_ns, one.file, one.line))
        users = sorted((one for one in found if one.users), key=lambda one: (-one.total_ns, one.file, one.line))
        kept = {*by_self[:MOST_FUNCTIONS], *users[:MOST_FUNCTIONS]}
        return cls(
            functions=tuple(one for one in by_self if one in kept),
            source="cprofile" if table is not None else "trace",
        )

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per function."""
        return [asdict(one) for one in self.functions]

    def users(self) -> tuple[Function, ...]:
        """Return the user's own functions, by total time."""
        return tuple(sorted((one for one in self.functions if one.users), key=lambda one: -one.total_ns))


def _of_profile(table: FunctionTable) -> list[Function]:
    return [
        Function(
            name=table.name[index],
            file=table.file[index],
            line=int(table.line[index]),
            calls=int(table.calls[index]),
            self_ns=int(table.self_ns[index]),
            total_ns=int(table.total_ns[index]),
            users=is_users(table.file[index]),
        )
        for index in range(len(table.name))
    ]


def _of_frames(rank: Rank) -> list[Function]:
    """Return the functions by the frames in a trace's steps; operators inside count for the frame around them."""
    timeline, tree = rank.deep, rank.deep_calltree
    host, table = timeline.host, timeline.events
    is_frame = host.kind == Kind.PYTHON_FUNCTION
    frames = np.flatnonzero(is_frame & timeline.in_steps)
    if not len(frames):
        return []
    index = np.arange(len(host))
    above = tree.parent_value(tree.inherit(np.where(is_frame, index, -1)))
    inner = np.flatnonzero(is_frame & (above >= 0))
    children = np.bincount(above[inner], host.dur_ns[inner], minlength=len(host)).astype(np.int64)
    own = np.maximum(host.dur_ns - children, 0)
    names, back = table.distinct_names(host.row[frames])
    same = above[frames]
    outermost = (same < 0) | (host.name[np.maximum(same, 0)] != host.name[frames])
    calls, self_ns = np.bincount(back), np.bincount(back, own[frames]).astype(np.int64)
    total_ns = np.bincount(back, host.dur_ns[frames] * outermost).astype(np.int64)
    users = table.fitting(is_users_frame, Kind.PYTHON_FUNCTION)[names]
    kept = np.flatnonzero(~table.fitting(MODULE_NAME, Kind.PYTHON_FUNCTION)[names])
    mine = kept[users[kept]]
    wanted = {*_largest(kept, self_ns).tolist(), *_largest(mine, total_ns).tolist()}
    found = []
    for place in sorted(wanted):
        file, line, name = split_frame(_ADDRESS.sub("", table.strings.text(int(names[place]))))
        values = int(calls[place]), int(self_ns[place]), int(total_ns[place])
        found.append(Function(name, file, line, *values, users=bool(users[place])))
    return found


def _largest(places: IntArray, amount: IntArray) -> IntArray:
    """Return the places with the `MOST_FUNCTIONS` largest amounts, all that are as large as the last of them too."""
    if len(places) <= MOST_FUNCTIONS:
        return places
    least = np.partition(amount[places], -MOST_FUNCTIONS)[-MOST_FUNCTIONS]
    found: IntArray = places[amount[places] >= least]
    return found
