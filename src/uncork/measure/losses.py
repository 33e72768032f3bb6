"""How much a recording lost: launches without their record on the device, operators without what they always call.

And how much of it cannot be: streams that do two things at once.
"""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import Kind, distinct
from uncork.intervals import intervals, total_ns
from uncork.operators import COPY_CALL, KERNEL_CALL
from uncork.timeline import Timeline

BoolArray = npt.NDArray[np.bool_]

FEWEST = 20
"""Of fewer launches or operators no share is taken: one of them may be an exception."""
FEW_CALLS = 5
"""So many calls of one name do not all lose the same thing by chance."""
LONG_ENOUGH_NS = 3_000
"""Where times are whole microseconds, a shorter operator may end before what it calls."""
_MOST_NS = 1 << 62
"""Longest time that is added up; longer ones are no recording's, and would not fit an integer."""
_AUTOGRAD_NODE = "autograd::engine::evaluate_function: "
_ALWAYS_CALLS = {
    "aten::convolution": "aten::_convolution",
    "aten::batch_norm": "aten::_batch_norm_impl_index",
    "aten::_to_copy": "aten::copy_",
    "aten::item": "aten::_local_scalar_dense",
}
"""Operator → the one that its implementation in PyTorch always calls directly (native_functions and their kernels)."""


def lost_kernels_share(timeline: Timeline) -> float:
    """Return the share of kernel launches without a kernel; 1 where kernels were launched and none is recorded."""
    launches = _calls(timeline, KERNEL_CALL) & ~timeline.captured
    if not launches.any() or not len(timeline.device):
        return 0.0
    if not (timeline.device.kind == Kind.KERNEL).any():
        return 1.0
    return _without_record(timeline, launches) if launches.sum() >= FEWEST else 0.0


def lost_share(timeline: Timeline) -> float:
    """Return the share of launches and copies without a device record; 0 where no record is linked at all."""
    return _without_record(timeline, _calls(timeline, KERNEL_CALL, COPY_CALL) & ~timeline.captured)


def twice_share(timeline: Timeline) -> float:
    """Return the share of the device's summed times in which streams would do more than one thing at once."""
    device = timeline.device
    if not len(device):
        return 0.0
    streams, place = distinct(device.track, len(timeline.events.tracks))
    begin = device.start_ns - device.start_ns.min()
    span = int((begin + device.dur_ns).max()) + 1
    if span * len(streams) >= _MOST_NS:
        return 0.0
    # Streams one behind another: what overlaps then is of one stream.
    begin += place * span
    summed = int(device.dur_ns.sum())
    return 1 - total_ns(intervals(begin, begin + device.dur_ns)) / summed if summed else 0.0


def hollow_share(timeline: Timeline) -> float:
    """Return the share of operators below which the one that they always call is missing; 0 where there are few."""
    host, names = timeline.host, timeline.host.name
    is_op = host.kind == Kind.CPU_OP
    always = _called_names(timeline)
    called = always[names]
    wanted = is_op & (called >= 0) & (host.dur_ns >= LONG_ENOUGH_NS)
    if wanted.sum() < FEWEST:
        return 0.0
    rows = np.flatnonzero(is_op)
    above = host.ancestor_where(is_op, host.parent[rows])
    inside = above >= 0
    fits = inside & (names[rows] == np.where(inside, called[np.maximum(above, 0)], -1))
    kept = np.zeros(len(host), bool)
    kept[above[fits]] = True
    # Where none of a name's calls has it, this version or backend goes another way: nothing was lost.
    count, whole = (np.bincount(names[rows], minlength=len(always)) for rows in (wanted, wanted & kept))
    wanted &= (whole[names] > 0) | (count[names] < FEW_CALLS)
    return float((~kept[wanted]).mean()) if wanted.sum() >= FEWEST else 0.0


def _called_names(timeline: Timeline) -> npt.NDArray[np.int64]:
    """Return for each text the place of the operator's name that it always calls, -1 where it calls none."""
    table = timeline.events
    used, names = table.names_of(Kind.CPU_OP)
    place = dict(zip(names, used.tolist(), strict=True))
    called = np.full(len(table.strings), -1, np.int64)
    for name, index in place.items():
        always = name.removeprefix(_AUTOGRAD_NODE) if name.startswith(_AUTOGRAD_NODE) else _ALWAYS_CALLS.get(name)
        if always is not None:
            called[index] = place.get(always, len(called))
    return called


def _calls(timeline: Timeline, *patterns: re.Pattern[str]) -> BoolArray:
    """Return which host slices are runtime calls that any of the patterns fits."""
    found = np.zeros(len(timeline.host), bool)
    for pattern in patterns:
        found |= timeline.named(pattern, Kind.RUNTIME)
    return found


def _without_record(timeline: Timeline, launches: BoolArray) -> float:
    """Return the share of some launches that no device record names.

    What was launched after the last recorded launch, while the device still works, may run when the recording ends;
    what was launched after the device's last record would have run at once. First steps that lost all are left out.
    """
    host, device = timeline.host, timeline.device
    linked = np.zeros(len(host), bool)
    linked[device.launch[device.launch >= 0]] = True
    if not linked.any():
        return 0.0
    reach, end = host.start_ns[linked].max(), device.end_ns.max()
    counted = launches & ((host.start_ns <= reach) | (host.start_ns > end))
    if timeline.steps.blind:
        counted &= host.start_ns >= timeline.window[0]
    return float((~linked[counted]).mean()) if counted.any() else 0.0
