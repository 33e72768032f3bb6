"""CollectivesTable: what each kind of collective of each process group takes per step, on one rank."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from uncork.measure import Measurement, Rank
from uncork.measure.collectives import Collectives
from uncork.records import dataclass


@dataclass(frozen=True)
class CollectivesTable(Measurement):
    """Collectives by kind and group, the longest first.

    Args:
        kinds: One row each, as the report shows it; waiting can only be told over all ranks (section ``comm``).
    """

    kinds: tuple[Mapping[str, Any], ...]
    table: ClassVar[str] = "collectives"

    @classmethod
    def of(cls, rank: Rank) -> "CollectivesTable":
        """Return the table of a rank; raises `MissingEvidence` where it has no collectives."""
        found = rank.made(Collectives)
        inside = found.step >= 0 if (found.step >= 0).any() else np.ones(len(found), bool)
        steps = max(len(rank.timeline.steps), 1)
        wall_ns = int(rank.timeline.steps.dur_ns.sum())
        rows = []
        for group, name in sorted({*zip(found.group[inside].tolist(), found.name[inside].tolist(), strict=True)}):
            mine = inside & (found.group == group) & (found.name == name)
            sized = mine & (found.bytes > 0)
            took_ns = int(found.dur_ns[sized].sum())
            rows.append(
                {
                    "name": found.names[name],
                    "group": found.groups[group],
                    "group_size": int(found.group_size[mine].max()) or None,
                    "calls_per_step": int(mine.sum()) / steps,
                    "size_bytes": int(found.bytes[sized].sum()) // steps if sized.any() else None,
                    "bytes_per_s": int(found.bytes[sized].sum()) / took_ns * 1e9 if took_ns else None,
                    "device_ns": int(found.dur_ns[mine].sum()) // steps,
                    "step_share": int(found.dur_ns[mine].sum()) / wall_ns if wall_ns else None,
                    "exposed_ns": int(found.exposed_ns[mine].sum()) // steps,
                }
            )
        return cls(tuple(sorted(rows, key=lambda row: (-int(str(row["device_ns"])), str(row["name"])))))

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per kind and group."""
        return self.kinds
