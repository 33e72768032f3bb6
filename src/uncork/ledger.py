"""The ledger: every nanosecond of a step to exactly one cause.

Painting, not bookkeeping: each cause claims intervals; in order of priority each takes what no earlier one took
inside the steps; the rest is ``unexplained``. So the causes sum to the wall time by construction.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from uncork.events import DEVICE_KINDS, Kind, NameTest
from uncork.findings import Bottleneck
from uncork.host_causes import cpu_claims, idle_claims
from uncork.intervals import Intervals, covered_ns, intersect, intervals, subtract, union
from uncork.kernels import BANDWIDTH, CLASSES, COMPUTE, is_matrix_vector
from uncork.records import dataclass
from uncork.timeline import Timeline, once

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cause:
    """What time can go to.

    Args:
        bottleneck: The class it counts for; None for time that counts for none.
        recoverable: Share of it that could be given back at best: waiting counts fully, work of the device by half
            where no roofline says better.
    """

    bottleneck: Bottleneck | None
    recoverable: float = 1.0


CAUSES: Mapping[str, Cause] = MappingProxyType(
    {
        # What the device does.
        "gemm": Cause(Bottleneck.COMPUTE, 0.5),
        "other_kernel": Cause(Bottleneck.COMPUTE, 0.5),
        "bandwidth": Cause(Bottleneck.MEMORY, 0.5),
        "comm": Cause(Bottleneck.COMMUNICATION),
        "comm_wait": Cause(None),
        "copy": Cause(Bottleneck.MEMORY),
        # What an idle device waits for; without a device, what the main thread does.
        "data_loading": Cause(Bottleneck.DATA_LOADING),
        "core_wait": Cause(Bottleneck.DATA_LOADING),
        "first_use": Cause(None, 0.0),
        "stall": Cause(None, 0.0),
        "unrecorded": Cause(None, 0.0),
        "copy_host": Cause(Bottleneck.MEMORY),
        "sync": Cause(Bottleneck.FRAMEWORK),
        "allocator": Cause(Bottleneck.MEMORY),
        "gc": Cause(Bottleneck.FRAMEWORK),
        "compile": Cause(Bottleneck.FRAMEWORK),
        "io": Cause(Bottleneck.FRAMEWORK),
        "cpu_heavy": Cause(Bottleneck.COMPUTE),
        "dispatch": Cause(Bottleneck.FRAMEWORK),
        "compute": Cause(Bottleneck.COMPUTE),
        "memop": Cause(Bottleneck.MEMORY),
        "tiny": Cause(Bottleneck.FRAMEWORK),
        "optimizer": Cause(Bottleneck.FRAMEWORK),
        "py_prep": Cause(Bottleneck.DATA_LOADING),
        "py_short": Cause(Bottleneck.FRAMEWORK),
        "py_stack": Cause(Bottleneck.FRAMEWORK),
        "unexplained": Cause(None, 0.0),
    }
)
"""Every cause, in the order in which reports list them. Priorities are those of `device_claims`, `idle_claims`
and `cpu_claims`."""


DEVICE_CAUSES = ("gemm", "other_kernel", "bandwidth", "comm", "copy")
"""What device work counts for: arithmetic before memory, both before what they hide."""
OUTSIDE = ("first_use", "stall")
"""Causes that are no part of a steady step: they leave the denominator of shares, and are told."""


@dataclass(frozen=True, eq=False)
class Ledger:
    """Where the time of one rank's steps went.

    Args:
        causes: Names of the causes that this kind of recording knows.
        ns: Time of each in each step, int64 (causes, steps); columns sum to `step_ns`.
        step_ns: Wall time of each step, int64 (steps,).
        on_device: Whether steps are partitioned by what the device does, else by the main thread.
        busy_ns: Time of each step in which the device (or, without one, an operator) works, int64 (steps,).
        intervals: When each cause had its time.
    """

    causes: tuple[str, ...]
    ns: IntArray
    step_ns: IntArray
    on_device: bool
    busy_ns: IntArray
    intervals: Mapping[str, Intervals]


def partition(timeline: Timeline) -> Ledger:
    """Return the ledger of a rank."""
    on_device = len(timeline.device) > 0
    if on_device:
        claims = [*device_claims(timeline), *idle_claims(timeline)]
        busy = timeline.device_busy
    else:
        claims = list(cpu_claims(timeline))
        busy = union(*(claim for cause, claim in claims if cause in ("compute", "memop", "tiny", "comm", "optimizer")))
    steps = timeline.steps
    painted = paint(steps.intervals, claims)
    ns = np.array([covered_ns(taken, steps.start_ns, steps.end_ns) for taken in painted.values()], np.int64)
    return Ledger(
        causes=tuple(painted),
        ns=ns.reshape(len(painted), len(steps)),
        step_ns=steps.dur_ns,
        on_device=on_device,
        busy_ns=covered_ns(busy, steps.start_ns, steps.end_ns),
        intervals=painted,
    )


def paint(
    whole: Intervals, claims: Iterator[tuple[str, Intervals]] | list[tuple[str, Intervals]]
) -> dict[str, Intervals]:
    """Return what each cause gets of a merged set: the part of its claim that no earlier cause got."""
    painted: dict[str, Intervals] = {}
    for cause, claim in claims:
        taken = intersect(whole, claim)
        painted[cause] = union(painted[cause], taken) if cause in painted else taken
        whole = subtract(whole, taken)
    painted["unexplained"] = whole
    return painted


def device_claims(timeline: Timeline) -> Iterator[tuple[str, Intervals]]:
    """Yield what the device does, by cause."""
    device = timeline.device
    for name in DEVICE_CAUSES:
        rows = counts_for(timeline, name)
        yield name, intervals(device.start_ns[rows], device.end_ns[rows])


def counts_for(timeline: Timeline, cause: str) -> npt.NDArray[np.bool_]:
    """Return for each device slice whether its time counts for one of `DEVICE_CAUSES`."""
    found: npt.NDArray[np.bool_] = _device_causes(timeline) == DEVICE_CAUSES.index(cause)
    return found


@once
def _device_causes(timeline: Timeline) -> npt.NDArray[np.int8]:
    """Return the place in `DEVICE_CAUSES` of what each device slice's time counts for, -1 for waits."""
    device = timeline.device
    code = DEVICE_CAUSES.index
    cause = np.array([code(_KERNEL_CAUSE[kind]) for kind in CLASSES], np.int8)[timeline.kernel_class]

    def named(test: NameTest, *kinds: Kind) -> npt.NDArray[np.bool_]:
        return timeline.events.which(timeline.events.name[device.row], device.kind, test, *kinds)

    cause[named(is_matrix_vector, *DEVICE_KINDS)] = code("bandwidth")
    # MTIA writes what a stream waits for as kernels; waiting is no work.
    cause[named(_WAITS, *DEVICE_KINDS)] = -1
    cause[device.kind == Kind.GPU_MEMSET] = code("bandwidth")
    cause[device.kind == Kind.GPU_MEMCPY] = code("copy")
    cause[named(_WITHIN, Kind.GPU_MEMCPY)] = code("bandwidth")
    cause[named(_TO_PEER, Kind.GPU_MEMCPY)] = code("comm")
    return cause


_WAITS = re.compile(r"^event_(wait|record)$")
_TO_PEER = re.compile(r"PtoP|PeerToPeer")
_WITHIN = re.compile(r"DtoD|DeviceToDevice")
_KERNEL_CAUSE = {
    kind: "gemm"
    if kind in COMPUTE
    else "bandwidth"
    if kind in BANDWIDTH
    else "comm"
    if kind == "comm"
    else "other_kernel"
    for kind in CLASSES
}
