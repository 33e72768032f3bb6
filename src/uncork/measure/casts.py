"""Casts: conversions that autocast makes on the way into an operator."""

import re
from collections import Counter

import numpy as np

from uncork.events import Kind
from uncork.findings import Location
from uncork.intervals import EMPTY, intersect, intervals, total_ns
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.whereabouts import locate
from uncork.records import dataclass

# Outside autocast none of these converts its inputs.
_EATS_CASTS = re.compile(
    r"^aten::(linear|matmul|mm|bmm|addmm|baddbmm|conv[123]d|conv_transpose[123]d|einsum|scaled_dot_product_attention"
    r"|layer_norm|softmax|log_softmax|cross_entropy_loss|nll_loss|mse_loss|sum|pow|norm)$"
)


@dataclass(frozen=True)
class Casts(Measurement):
    """Conversions directly inside operators that do not convert by themselves.

    Args:
        count: Per step.
        host_ns: Their time on the host per step.
        device_ns: Time per step of the copies they launch.
        idle_ns: Time per step in which they run on the host and the device waits for it.
        op: The operator that has most of them.
        location: The user's frame that has most of them, where known.
    """

    count: float
    host_ns: int
    device_ns: int
    idle_ns: int
    op: str
    location: Location

    @classmethod
    def of(cls, rank: Rank) -> "Casts":
        """Return the casts of a rank; without host operators they cannot be seen."""
        timeline = rank.timeline
        host, table = timeline.host, timeline.events
        is_op = host.kind == Kind.CPU_OP
        if not is_op.any():
            raise MissingEvidence("host")
        eats = timeline.named(_EATS_CASTS, Kind.CPU_OP)
        casts = timeline.named("aten::_to_copy", Kind.CPU_OP)
        casts &= timeline.in_steps
        places = np.flatnonzero(casts)
        # aten::linear > aten::to > aten::_to_copy: the operator is two above.
        through = np.where(host.parent[places] >= 0, host.parent[np.maximum(host.parent[places], 0)], -1)
        inside = (through >= 0) & eats[np.maximum(through, 0)]
        places, owner = places[inside], through[inside]
        count = max(len(timeline.steps), 1)
        device = timeline.device
        under = np.zeros(len(host), bool)
        under[places] = True
        linked = np.flatnonzero(device.launch >= 0)
        mine = linked[host.ancestor_where(under, device.launch[linked]) >= 0]
        names = table.names(host.row[owner])
        spans = intervals(host.start_ns[places], host.end_ns[places])
        where = Counter(locate(rank, owner)).most_common(1)
        return cls(
            count=len(places) / count,
            host_ns=int(host.dur_ns[places].sum()) // count,
            device_ns=int(device.dur_ns[mine].sum()) // count,
            idle_ns=total_ns(intersect(spans, rank.ledger.intervals.get("dispatch", EMPTY))) // count,
            op=max(sorted(set(names)), key=names.count) if names else "",
            location=where[0][0] if where else Location(),
        )
