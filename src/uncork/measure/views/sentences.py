"""Sentences about a timeline: the patterns that its ledger shows, each with the place where it shows best."""

from collections.abc import Mapping

import numpy as np

from uncork.events import IntArray, Kind
from uncork.intervals import Intervals, intervals, total_ns, union
from uncork.ledger import Ledger
from uncork.quantiles import median
from uncork.records import dataclass
from uncork.timeline import Timeline

PATTERN_SHARE = 0.10
"""A pattern is worth a sentence from this share of the steps on: the limit for contributing causes."""
DENSE_SHARE = 0.85
"""The device counts as filled from this busy share on (seed requirements R3)."""
TINY_KERNEL_NS = 10_000
"""A kernel shorter than launching it takes (5–10 µs) cannot hide the next launch."""
SLIVER_PART = 20
"""A break shorter than a twentieth of the longest stretch is none: a kernel or two between waits."""
_LONGEST = 3


@dataclass(frozen=True)
class Pattern:
    """A sentence and where to look.

    Args:
        id: Key of the catalogue.
        params: Its values.
        from_ns: Start of the stretch that shows it.
        to_ns: End of it.
    """

    id: str
    params: Mapping[str, object]
    from_ns: int
    to_ns: int


def patterns(timeline: Timeline, ledger: Ledger) -> list[Pattern]:
    """Return the patterns that fill a tenth of the steps or more, in the order of the articles."""
    wall = int(ledger.step_ns.sum())
    if not wall:
        return []
    found = []
    busy = int(ledger.busy_ns.sum()) / wall
    if ledger.on_device and busy >= DENSE_SHARE:
        found.append(_dense(timeline, busy))
    for id_, causes in _PATTERNS.items():
        spans = union(*(ledger.intervals[cause] for cause in causes if cause in ledger.intervals))
        share = total_ns(spans) / wall
        if share >= PATTERN_SHARE:
            found.append(_sentence(id_, _stretches(spans, timeline.steps.start_ns), share, ledger.on_device))
    if ledger.on_device and (tiny := _tiny_kernels(timeline, ledger, wall)):
        found.append(tiny)
    return found


_PATTERNS = {
    "pattern.loader": ("data_loading",),
    "pattern.prepares": ("py_prep",),
    "pattern.copies": ("copy", "copy_host"),
    "pattern.dispatch": ("dispatch", "tiny"),
    "pattern.sync": ("sync",),
    "pattern.comm": ("comm", "comm_wait"),
    "pattern.python": ("py_short", "py_stack"),
    "pattern.unexplained": ("unexplained", "unrecorded"),
}


def _sentence(id_: str, spans: Intervals, share: float, on_device: bool) -> Pattern:
    length = spans[:, 1] - spans[:, 0]
    longest = int(length.argmax())
    margin = int(length[longest]) // 2
    key = id_ if on_device or id_ not in _ALSO_ON_CPU else f"{id_}.cpu"
    params = {"share": share, "count": len(spans), "longest_ns": int(length[longest])}
    return Pattern(key, params, int(spans[longest, 0]) - margin, int(spans[longest, 1]) + margin)


def _stretches(spans: Intervals, begins_ns: IntArray) -> Intervals:
    """Return a merged set as people see it: what only a sliver parts is one stretch, within a step."""
    sliver = int((spans[:, 1] - spans[:, 0]).max()) // SLIVER_PART
    ends, nexts = spans[:-1, 1], spans[1:, 0]
    new_step = np.searchsorted(begins_ns, nexts, "right") > np.searchsorted(begins_ns, ends, "left")
    apart = (nexts - ends > sliver) | new_step
    return np.column_stack([spans[np.append(True, apart), 0], spans[np.append(apart, True), 1]])


_ALSO_ON_CPU = frozenset(
    {
        *("pattern.loader", "pattern.prepares", "pattern.dispatch"),
        *("pattern.python", "pattern.unexplained", "pattern.comm"),
    }
)


def _dense(timeline: Timeline, busy: float) -> Pattern:
    start, end = timeline.window
    middle = (start + end) // 2
    part = max((end - start) // 40, 1)
    return Pattern("pattern.dense", {"busy_share": busy}, middle - part, middle + part)


def _tiny_kernels(timeline: Timeline, ledger: Ledger, wall: int) -> Pattern | None:
    """Return the sentence on kernels too short to hide their launch, where the device waits for the host besides."""
    device = timeline.device
    waits = sum(total_ns(ledger.intervals[cause]) for cause in ("dispatch", "py_short") if cause in ledger.intervals)
    kernels = np.flatnonzero(device.kind == Kind.KERNEL)
    if not len(kernels) or waits < PATTERN_SHARE * wall:
        return None
    dur = device.dur_ns[kernels]
    short = kernels[dur < TINY_KERNEL_NS]
    if 2 * len(short) < len(kernels):
        return None
    spans = intervals(device.start_ns[short], device.end_ns[short])
    middle = int(spans[len(spans) // 2, 0])
    params = {"share": len(short) / len(kernels), "median_ns": int(median(dur)), "count": len(kernels)}
    return Pattern("pattern.tiny", params, middle - 500_000, middle + 500_000)


def longest(timeline: Timeline) -> tuple[IntArray, bool]:
    """Return the longest slice of each of the three names with the longest, and whether these are device slices.

    Without device work they are operators that do most of their time themselves, by that time.
    """
    device, host, table = timeline.device, timeline.host, timeline.events
    if len(device):
        return _longest_by_name(table.name[device.row].astype(np.int64), device.dur_ns, np.arange(len(device))), True
    ops = np.flatnonzero((host.kind == Kind.CPU_OP) & (2 * host.self_ns >= host.dur_ns))
    return _longest_by_name(host.name[ops].astype(np.int64), host.self_ns[ops], ops), False


def _longest_by_name(name: IntArray, amount: IntArray, slices: IntArray) -> IntArray:
    chosen: dict[int, int] = {}
    for place in np.argsort(-amount, kind="stable")[:5_000].tolist():
        chosen.setdefault(int(name[place]), int(slices[place]))
        if len(chosen) == _LONGEST:
            break
    return np.array(list(chosen.values()), np.int64)
