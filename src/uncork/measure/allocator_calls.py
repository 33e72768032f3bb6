"""AllocatorCalls: how often the device's driver is asked for memory, or given some back, while steps run."""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.operators import ALLOCATOR_CALL
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]

_GIVES_BACK = re.compile(r"free|release|unmap", re.IGNORECASE)


@dataclass(frozen=True)
class AllocatorCalls(Measurement):
    """Calls of the driver's allocator; PyTorch's own cache needs none of them in a steady step.

    Args:
        mallocs_per_step: Calls that take memory.
        frees_per_step: Calls that give it back: ``empty_cache``, or a full device.
        host_ns_per_step: Time in all of them.
        steps_with_calls: Steps that have any.
        steps: Steps in all.
        marked: Whether the recording marks its steps.
    """

    mallocs_per_step: float
    frees_per_step: float
    host_ns_per_step: int
    steps_with_calls: int
    steps: int
    marked: bool

    @classmethod
    def of(cls, rank: Rank) -> "AllocatorCalls":
        """Return the calls of a rank; needs the host's runtime calls."""
        timeline = rank.timeline
        host, steps = timeline.host, timeline.steps
        runtime = host.kind == Kind.RUNTIME
        if not runtime.any():
            raise MissingEvidence("device")
        calls = np.flatnonzero(timeline.named(ALLOCATOR_CALL, Kind.RUNTIME))
        step = steps.at(host.start_ns[calls])
        calls, step = calls[step >= 0], step[step >= 0]
        frees = timeline.named(_GIVES_BACK, Kind.RUNTIME)[calls]
        count = max(len(steps), 1)
        return cls(
            mallocs_per_step=int((~frees).sum()) / count,
            frees_per_step=int(frees.sum()) / count,
            host_ns_per_step=int(host.dur_ns[calls].sum()) // count,
            steps_with_calls=len(set(step.tolist())),
            steps=count,
            marked=steps.marked,
        )
