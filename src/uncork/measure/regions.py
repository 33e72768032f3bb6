"""Regions: the parts of a step that the user named with record_function, on host and device."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from uncork.events import Kind
from uncork.frames import is_users_region
from uncork.intervals import contains
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator_groups import host_steps
from uncork.records import dataclass

MOST_REGIONS = 100


@dataclass(frozen=True)
class Region:
    """A region of one name; times are means per step.

    Args:
        name: As the user named it.
        calls: How often it was entered in all steps.
        calls_per_step: Per step.
        host_ns: Time inside it on the host.
        device_ns: Time of the device work launched inside it.
    """

    name: str
    calls: int
    calls_per_step: float
    host_ns: int
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
        device = tree.with_children(tree.device_ns)
        names, back = table.distinct_names(host.row[found])
        regions = [
            Region(
                name=table.strings.text(int(code)),
                calls=int((back == place).sum()),
                calls_per_step=int((back == place).sum()) / steps,
                host_ns=int(host.dur_ns[found[back == place]].sum()) // steps,
                device_ns=int(device[found[back == place]].sum()) // steps,
            )
            for place, code in enumerate(names.tolist())
        ]
        return cls(tuple(sorted(regions, key=lambda one: (-one.host_ns, one.name))[:MOST_REGIONS]))

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per region."""
        return [asdict(one) for one in self.regions]
