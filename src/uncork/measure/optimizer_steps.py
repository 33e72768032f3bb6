"""OptimizerSteps: how the optimizer updates its parameters: one by one, in lists, or in one kernel."""

import re

import numpy as np

from uncork.calltree import updates
from uncork.events import Kind
from uncork.intervals import contains, intersect, intervals, total_ns
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.loader import under
from uncork.records import dataclass

STEP = re.compile(r"^Optimizer\.step#(?P<name>\w+)\.step")
_UPDATE = re.compile(r"^aten::(add_|mul_|addcdiv_|addcmul_|lerp_|sub_|copy_|sqrt|div)$")
_IDLE = ("dispatch", "py_short", "py_stack", "sync")
_CPU = ("optimizer", "tiny", "py_short", "py_stack")


@dataclass(frozen=True)
class OptimizerSteps(Measurement):
    """The optimizer's update in each step.

    Args:
        name: Class of the optimizer, the one that takes longest.
        kind: ``for-loop``, ``foreach`` or ``fused``; empty where there is none.
        cost_ns: Time on the host per step in which nothing but calls and Python runs (and a device, if any, idles).
        work_ns: Time per step in which its operators compute or move memory on the CPU; 0 where a device works.
        ops: Operators per step.
        tensors: Tensors updated per step, by the update called most often.
    """

    name: str
    kind: str
    cost_ns: int
    work_ns: int
    ops: int
    tensors: int

    @classmethod
    def of(cls, rank: Rank) -> "OptimizerSteps":
        """Return the updates of a rank; without host operators they cannot be seen."""
        timeline = rank.timeline
        host, table = timeline.host, timeline.events
        is_op = host.of_kind(Kind.CPU_OP, Kind.USER_ANNOTATION)
        if not is_op.any():
            raise MissingEvidence("host")
        is_op &= timeline.in_steps
        regions, begins_ns = updates(timeline)
        steps = (is_op & timeline.named(STEP, Kind.CPU_OP, Kind.USER_ANNOTATION))[regions]
        regions, begins_ns = regions[steps], begins_ns[steps]
        count = max(len(timeline.steps), 1)
        spans = intervals(begins_ns, host.end_ns[regions])
        below = np.flatnonzero(is_op & under(timeline, regions) & contains(spans, host.start_ns))
        names = table.names(host.row[below])
        ledger = rank.ledger

        def spent_ns(*causes: str) -> int:
            parts = [ledger.intervals[cause] for cause in causes if cause in ledger.intervals]
            return sum(total_ns(intersect(part, spans)) for part in parts) // count

        changes = [name for name in names if _UPDATE.match(name)]
        return cls(
            name=_longest(table.names(host.row[regions]), host.dur_ns[regions].tolist()),
            kind=_kind(set(names), len(timeline.device) > 0) if len(regions) else "",
            cost_ns=spent_ns(*(_IDLE if ledger.on_device else _CPU)),
            work_ns=0 if ledger.on_device else spent_ns("compute", "memop"),
            ops=len(below) // count,
            tensors=max((changes.count(name) for name in set(changes)), default=0) // count,
        )


def _kind(names: set[str], on_device: bool) -> str:
    """Return how parameters are updated, by the operators: on the CPU lists are taken apart again."""
    if any(name.startswith("aten::_fused_") for name in names):
        return "fused"
    lists = any(name.startswith("aten::_foreach_") for name in names)
    return "foreach" if lists and (on_device or not names & {"aten::addcdiv_", "aten::add_"}) else "for-loop"


def _longest(names: list[str], dur_ns: list[int]) -> str:
    """Return the class of the optimizer whose steps take longest in sum."""
    sums: dict[str, int] = {}
    for name, dur in zip(names, dur_ns, strict=True):
        found = STEP.match(name)
        key = found["name"] if found else name
        sums[key] = sums.get(key, 0) + dur
    return max(sums, key=lambda key: sums[key]) if sums else ""
