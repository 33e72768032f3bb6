"""What the host does while the device idles, and what it does where there is no device: claims for the ledger."""

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from uncork.calltree import updates
from uncork.driving import HostThreads, enclosing, group_medians
from uncork.events import Kind
from uncork.intervals import Intervals, complement, covered_ns, intersect, intervals, moments, union
from uncork.operators import ALLOCATES, ALLOCATOR_CALL, COPY_CALL, FIRST_USE_CALL, READS_BACK, WAIT_CALL
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Claims = Iterator[tuple[str, Intervals]]

FIRST_USE_NS = 1_000_000
"""A launch or set-up call this long, far over its kind's median, carries a first use."""
FIRST_USE_RATIO = 20
FEW_CALLS = 5
"""With fewer calls of a name there is no median to speak of."""
_STAGED = re.compile(r"HtoD.*Pageable|HostToDevice")
UNRECORDED_NS = 2_000_000
"""A wait this long over an idle device waits for work outside the recording: an idle device answers within tens of
microseconds."""
SHORT_GAP_NS = 300_000
"""Python between two operators: longer gaps without a Python frame stay unexplained."""
HEAVY_OP_NS = 200_000
"""Host operators of a device program whose own time is longer work on host data: launching takes 5–50 µs."""
TINY_OP_NS = 20_000
"""An operator whose median is shorter costs its call, not its work."""
TINY_OUTLIER_NS = 200_000
REGULAR_SHARE = 0.01
"""… unless at least this share of its calls takes `TINY_OUTLIER_NS`: rarer ones are stalls of a busy machine."""
STALLED_CALL_NS = 3_000_000
"""What a busy machine gives another program at a time (Linux: 3 ms and more)."""
STALLED_RATIO = 10
STALLED_RATIO_ONE_STEP = 100
"""A stalled call takes this many times its name's median; more where no second step shows whether it comes again."""
STALLED_OF_STEPS = 0.25
"""Long calls of one name in more of the steps (and in more than one) come again, as where large and small batches
take turns; what the machine gives to others falls on other names in other steps."""
STALLED_OF_CALLS = 4
"""Fewer calls of a name have no median to speak of."""


def idle_claims(timeline: Timeline) -> Claims:
    """Yield what the driving threads do while the device idles, by cause, the reason before the place."""
    idle = HostThreads(timeline)
    yield "data_loading", timeline.loader_waits
    yield "py_prep", idle.spans(idle.prepares)
    yield "first_use", idle.spans(first_use(timeline))
    wait, copy = idle.call(WAIT_CALL), idle.call(COPY_CALL)
    yield "unrecorded", _unrecorded(timeline, idle, wait | copy)
    # Reading one value is a copy by its call, but what it costs is the wait.
    yield "sync", idle.spans(idle.op(READS_BACK))
    yield "copy_host", idle.spans(copy)
    yield "sync", idle.spans(wait)
    yield "allocator", idle.spans(idle.call(ALLOCATOR_CALL))
    yield "gc", idle.collects
    yield "compile", idle.spans(idle.named("compile"))
    yield "io", idle.spans(idle.writes)
    yield "cpu_heavy", idle.spans(_heavy(timeline, idle))
    working = idle.spans(idle.works)
    yield "dispatch", working
    yield "py_short", _short_gaps(working, timeline)
    yield "py_stack", idle.python
    yield "unrecorded", idle.spans(idle.waits)


def cpu_claims(timeline: Timeline) -> Claims:
    """Yield what the main thread and autograd's threads do, by cause: each moment goes to the innermost operator."""
    own = HostThreads(timeline)
    start, end, op = innermost_operators(timeline, own)
    own_ns = np.bincount(op, end - start, minlength=len(timeline.host)).astype(np.int64)
    work = _cpu_work(timeline, own, own_ns)

    def spent(wanted: BoolArray) -> Intervals:
        inside = wanted[op]
        return intervals(start[inside], end[inside])

    working = intervals(start, end)
    small, short = spent(work["tiny"]), _short_gaps(working, timeline)
    yield "data_loading", timeline.loader_waits
    yield "py_prep", own.spans(own.prepares)
    yield "stall", spent(_stalled_calls(timeline, own, own_ns))
    yield "compile", own.spans(own.named("compile"))
    yield "comm", own.spans(own.named("comm") & (timeline.host.dur_ns > TINY_OP_NS))
    yield "gc", own.collects
    yield "io", own.spans(own.writes)
    yield "compute", spent(work["compute"])
    yield "memop", spent(work["memop"])
    regions, begins_ns = updates(timeline)
    mine = own.driving[regions]
    own_updates = intervals(begins_ns[mine], timeline.host.end_ns[regions[mine]])
    yield "optimizer", union(intersect(own_updates, small), _own_python(timeline, own_updates, working))
    yield "tiny", small
    # A backend's own threads, and what goes on after its call: only what the driving threads do not hide.
    yield "comm", union(own.spans(own.named("comm"), elsewhere=True), _outlasting(timeline, own.named("comm")))
    yield "py_short", short
    yield "py_stack", own.python
    yield "unrecorded", own.spans(own.waits)


def _own_python(timeline: Timeline, updates_ns: Intervals, working: Intervals) -> Intervals:
    """Return the gaps between the operators of updates: nothing else runs there but the optimizer's Python.

    Those as long as a busy machine's stalls count only where they come again in other steps.
    """
    gaps, steps = intersect(updates_ns, complement(working, *timeline.window)), timeline.steps
    long = gaps[:, 1] - gaps[:, 0] >= STALLED_CALL_NS
    step = steps.at(gaps[long, 0])
    again = len(moments(step[step >= 0])) > max(1, int(STALLED_OF_STEPS * len(steps)))
    return gaps if again else gaps[~long]


def _outlasting(timeline: Timeline, wanted: BoolArray) -> Intervals:
    """Return how long slices last that outlive the call around them: a receive ends where it is awaited."""
    table, host = timeline.events, timeline.host
    rows = host.row[np.flatnonzero(wanted & (host.dur_ns < table.dur_ns[host.row]))]
    return intervals(table.ts_ns[rows], table.end_ns[rows])


def _stalled_calls(timeline: Timeline, own: HostThreads, own_ns: IntArray) -> BoolArray:
    """Return which slices are operators that stood still: far longer than their like, and in few of the steps."""
    host, steps = timeline.host, timeline.steps
    found = np.zeros(len(host), bool)
    rows = np.flatnonzero(own.works & own.driving & (own_ns > 0))
    if not len(rows):
        return found
    names, back = timeline.events.distinct_names(host.row[rows])
    count = np.bincount(back, minlength=len(names))
    ratio = STALLED_RATIO if len(steps) > 1 else STALLED_RATIO_ONE_STEP
    usual = np.maximum(group_medians(back, own_ns[rows], len(names)), 1)
    long = (own_ns[rows] >= np.maximum(STALLED_CALL_NS, ratio * usual[back])) & (count[back] >= STALLED_OF_CALLS)
    step = steps.at(host.start_ns[rows])
    # Each name counts once in a step; where there is only one step, each time.
    inside = long & (step >= 0)
    pairs = moments(back[inside] * len(steps) + step[inside])
    times = np.bincount(pairs // len(steps) if len(steps) > 1 else back[long], minlength=len(names))
    again = times > max(1, int(STALLED_OF_STEPS * len(steps)))
    found[rows[long & ~again[back]]] = True
    return found


def _cpu_work(timeline: Timeline, own: HostThreads, own_ns: IntArray) -> dict[str, BoolArray]:
    """Return which slices compute, move memory, or only cost their call; by their own time."""
    tiny = own.overhead | _tiny(timeline, own_ns, own.works & own.driving)
    # Calls of a device's runtime occur where its records are missing: copies move memory, waits explain nothing.
    call = own.kind == Kind.RUNTIME
    moves, waits = own.call(COPY_CALL) | own.call(ALLOCATOR_CALL), own.call(WAIT_CALL)
    return {
        "compute": own.named("compute") & ~tiny,
        "memop": (own.named("memory") & ~tiny) | moves,
        "tiny": (own.works & tiny & ~moves & ~waits) | (call & ~moves & ~waits),
    }


def innermost_operators(timeline: Timeline, own: HostThreads) -> tuple[IntArray, IntArray, IntArray]:
    """Return (start, end, slice) of the stretches in which one operator is innermost on a driving thread."""
    host = timeline.host
    parts: list[tuple[IntArray, IntArray, IntArray]] = []
    for track in own.tracks:
        rows = np.flatnonzero((host.track == track) & own.works)
        bounds = moments(host.start_ns[rows], host.end_ns[rows])
        if len(bounds) < 2:
            continue
        op = host.ancestor_where(own.works, host.innermost(np.full(len(bounds) - 1, track), bounds[:-1]))
        found = op >= 0
        parts.append((bounds[:-1][found], bounds[1:][found], op[found]))
    if not parts:
        none = np.empty(0, np.int64)
        return none, none, none
    start, end, op = (np.concatenate(column) for column in zip(*parts, strict=True))
    return start, end, op


def _tiny(timeline: Timeline, own_ns: IntArray, works: BoolArray) -> BoolArray:
    """Return which slices are operators whose median own time is that of a call without work."""
    rows = np.flatnonzero(works)
    names, back = timeline.events.distinct_names(timeline.host.row[rows])
    count = np.bincount(back, minlength=len(names))
    long = own_ns[rows] >= TINY_OUTLIER_NS
    often = np.bincount(back, long, minlength=len(names))
    regular = (often >= REGULAR_SHARE * count) & (often > 1)
    found = np.zeros(len(timeline.host), bool)
    found[rows] = (group_medians(back, own_ns[rows], len(names))[back] <= TINY_OP_NS) & ~(long & regular[back])
    return found


def first_use(timeline: Timeline) -> BoolArray:
    """Return which host slices are calls that carry a first use: lazy loading, contexts, first allocation."""
    host = timeline.host
    rows = np.flatnonzero(timeline.named(FIRST_USE_CALL, Kind.RUNTIME))
    dur = host.dur_ns[rows]
    names, back = timeline.events.distinct_names(host.row[rows])
    count = np.bincount(back, minlength=len(names))
    median = group_medians(back, dur, len(names))
    long = (dur >= FIRST_USE_NS) & ((dur > FIRST_USE_RATIO * median[back]) | (count[back] < FEW_CALLS))
    rows = rows[long]
    busy = covered_ns(timeline.device_busy, host.start_ns[rows], host.end_ns[rows])
    found = np.zeros(len(host), bool)
    found[rows[2 * busy < host.dur_ns[rows]]] = True
    return found


def _unrecorded(timeline: Timeline, idle: HostThreads, blocking: BoolArray) -> Intervals:
    """Return the idle parts of blocking calls that are too long to be anything recorded."""
    host, device = timeline.host, timeline.device
    # Only copies to the device are staged by the host; copies from it wait for what is before them in the stream.
    staged = timeline.events.name_is(_STAGED)[device.row]
    staging = np.zeros(len(host), bool)
    staging[device.launch[staged & (device.launch >= 0)]] = True
    gaps = complement(timeline.device_busy, *timeline.window)
    waits = intersect(idle.spans(blocking & ~staging), gaps)
    return waits[waits[:, 1] - waits[:, 0] >= UNRECORDED_NS]


def _heavy(timeline: Timeline, idle: HostThreads) -> BoolArray:
    """Return which slices are operators that work on host data: long, by themselves, and with nothing on the device.

    Allocations and reads of a value that take long are stalls of the host, no work.
    """
    host = timeline.host
    works = (idle.kind == Kind.CPU_OP) & (idle.named("compute") | idle.named("memory"))
    works &= ~idle.op(ALLOCATES) & ~idle.op(READS_BACK)
    long = (host.self_ns >= HEAVY_OP_NS) & (2 * host.self_ns >= host.dur_ns)
    launches: BoolArray = idle.kind == Kind.RUNTIME
    launches[timeline.launch_op[timeline.launch_op >= 0]] = True
    if not launches.any():
        # Nothing tells the operators that work on the host from those that launch work.
        return launches
    found: BoolArray = works & long
    if found.any():
        found &= ~enclosing(host, launches)
    return found


def _short_gaps(working: Intervals, timeline: Timeline) -> Intervals:
    """Return the gaps between host events that are short enough to be Python between operators."""
    gaps = complement(working, *timeline.window)
    return gaps[gaps[:, 1] - gaps[:, 0] <= SHORT_GAP_NS]
