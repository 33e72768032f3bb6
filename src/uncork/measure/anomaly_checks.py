"""AnomalyChecks: what autograd's anomaly detection adds to each backward pass."""

import numpy as np

from uncork.events import Kind
from uncork.intervals import intersect, intervals, subtract, total_ns
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.machine import Machine
from uncork.operators import AUTOGRAD
from uncork.records import dataclass

_CHECK = frozenset({"aten::isnan", "aten::_is_any_true", "aten::any", "aten::item"})


@dataclass(frozen=True)
class AnomalyChecks(Measurement):
    """Checks of gradients for NaN.

    Args:
        checks: Per step.
        cost_ns: Their time per step (with a device: while it idles).
        on: Whether the program is known to have switched them on or off; None where only the checks tell.
    """

    checks: float
    cost_ns: int
    on: bool | None

    @classmethod
    def of(cls, rank: Rank) -> "AnomalyChecks":
        """Return the checks of a rank; without host operators they cannot be seen."""
        timeline = rank.timeline
        host = timeline.host
        is_op = host.kind == Kind.CPU_OP
        if not is_op.any():
            raise MissingEvidence("host")
        node = timeline.named(AUTOGRAD, Kind.CPU_OP)
        below = (host.parent >= 0) & node[np.maximum(host.parent, 0)]
        below &= timeline.in_steps
        tests = below & timeline.named("aten::isnan", Kind.CPU_OP)
        checks = np.flatnonzero(below & timeline.named(_CHECK, Kind.CPU_OP) & tests.any())
        spans = intersect(intervals(host.start_ns[checks], host.end_ns[checks]), timeline.steps.intervals)
        steps = max(len(timeline.steps), 1)
        return cls(
            checks=int(tests.sum()) / steps,
            cost_ns=total_ns(subtract(spans, timeline.device_busy)) // steps,
            on=rank.made(Machine).anomaly,
        )
