"""ZeroedGradients: what ``zero_grad`` costs where it writes zeros instead of dropping the gradients."""

import re

import numpy as np

from uncork.events import Kind
from uncork.findings import Location
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.whereabouts import locate
from uncork.records import dataclass

_ZERO_GRAD = re.compile(r"^Optimizer\.zero_grad#")
_WRITES = re.compile(r"^aten::(zero_|_foreach_zero_|fill_)$")


@dataclass(frozen=True)
class ZeroedGradients(Measurement):
    """Zeros written by ``zero_grad`` in the steps of one rank.

    Args:
        calls_per_step: Operators in ``zero_grad`` that write zeros.
        device_ns_per_step: Device time that they launch.
        host_ns_per_step: Time of the regions on the host that hold such operators.
        location: Where.
    """

    calls_per_step: float
    device_ns_per_step: int
    host_ns_per_step: int
    location: Location

    @classmethod
    def of(cls, rank: Rank) -> "ZeroedGradients":
        """Return what a rank's ``zero_grad`` does; needs the region that optimisers name."""
        timeline = rank.timeline
        host = timeline.host
        region = timeline.named(_ZERO_GRAD, Kind.CPU_OP, Kind.USER_ANNOTATION)
        if not region.any():
            raise MissingEvidence("optimizer_regions")
        around = host.ancestor_where(region, np.arange(len(host)))
        writes = np.flatnonzero((around >= 0) & timeline.named(_WRITES, Kind.CPU_OP))
        steps = max(len(timeline.steps), 1)
        op = timeline.launch_op
        launched = (op >= 0) & (around[np.maximum(op, 0)] >= 0)
        return cls(
            calls_per_step=len(writes) / steps,
            device_ns_per_step=int(timeline.device.dur_ns[launched].sum()) // steps,
            host_ns_per_step=int(host.dur_ns[sorted(set(around[writes].tolist()))].sum()) // steps,
            location=locate(rank, writes[:1])[0] if len(writes) else Location(),
        )
