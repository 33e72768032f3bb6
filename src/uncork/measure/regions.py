"""Regions: the parts of a step that the user named with record_function, on host and device."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uncork.calltree import CallTree
from uncork.events import Kind
from uncork.frames import is_users_region
from uncork.intervals import contains
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator_groups import host_steps
from uncork.records import dataclass

MOST_REGIONS = 100
MOST_AROUND = 8
"""A function that calls itself nests without end; so many regions around one tell where it is."""
_INSIDE = " › "
IntArray = npt.NDArray[np.int64]
Level = tuple[int, int]
"""(the level around it, -1 for none; the number of its name)."""


@dataclass(frozen=True)
class Region:
    """A region of one name inside the same others; times are means per step.

    Args:
        name: As the user named it.
        inside: The regions around it, outermost first; empty where there is none.
        calls: How often it was entered in all steps.
        calls_per_step: Per step.
        host_ns: Time inside it on the host.
        host_self_ns: The same without the regions inside it: these add up.
        device_ns: Time of the device work launched inside it.
    """

    name: str
    inside: str
    calls: int
    calls_per_step: float
    host_ns: int
    host_self_ns: int
    device_ns: int


@dataclass(frozen=True)
class Regions(Measurement):
    """The user's regions.

    Args:
        regions: By host time, largest first.
    """

    regions: tuple[Region, ...]
    table: ClassVar[str] = "regions"

    @classmethod
    def of(cls, rank: Rank) -> "Regions":
        """Return the regions of a rank; a program need not name any."""
        timeline, tree = rank.timeline, rank.calltree
        host, table, steps = timeline.host, timeline.events, max(len(timeline.steps), 1)
        if not len(host):
            raise MissingEvidence("host")
        found = np.flatnonzero(
            timeline.named(is_users_region, Kind.USER_ANNOTATION) & contains(host_steps(timeline), host.start_ns)
        )
        found = found[np.argsort(host.depth[found], kind="stable")]
        around = _around(tree, found)
        own_ns = host.dur_ns[found].copy()
        np.subtract.at(own_ns, around[around >= 0], host.dur_ns[found[around >= 0]])
        names, code = table.distinct_names(host.row[found])
        level, levels = _levels(around, code)
        calls = np.bincount(level, minlength=len(levels))
        times = [host.dur_ns[found], own_ns, tree.with_children(tree.device_ns)[found]]
        sums = [np.bincount(level, time, len(levels)).astype(np.int64) // steps for time in times]
        regions = []
        for place in np.argsort(-sums[0], kind="stable")[:MOST_REGIONS].tolist():
            *inside, name = [table.strings.text(int(names[one])) for one in _path(levels, place)]
            count, times_ns = int(calls[place]), [int(time[place]) for time in sums]
            regions.append(Region(name, _INSIDE.join(inside), count, count / steps, *times_ns))
        return cls(tuple(regions))

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per region."""
        return [asdict(one) for one in self.regions]


def _around(tree: CallTree, found: IntArray) -> IntArray:
    """Return for each of some slices the place among them of the innermost one around it, -1 where there is none."""
    place = np.full(len(tree.host), -1)
    place[found] = np.arange(len(found))
    around: IntArray = tree.parent_value(tree.inherit(place))[found]
    return around


def _levels(around: IntArray, code: IntArray) -> tuple[IntArray, list[Level]]:
    """Return (the level of each region; the levels: regions of one name inside the same others).

    Args:
        around: Place of the region around each, which comes before it; -1 where there is none.
        code: Number of each one's name.
    """
    levels: dict[Level, int] = {}
    found: list[int] = []
    for outer, name in zip(around.tolist(), code.tolist(), strict=True):
        found.append(levels.setdefault((found[outer] if outer >= 0 else -1, name), len(levels)))
    return np.array(found, np.int64), list(levels)


def _path(levels: Sequence[Level], level: int) -> list[int]:
    """Return the numbers of the names of a level, of the outermost region first; of the innermost ones at most."""
    names: list[int] = []
    while level >= 0 and len(names) <= MOST_AROUND:
        level, name = levels[level]
        names.append(name)
    return names[::-1]
