"""A made-up training recording of any size, for measuring the page: steps, threads, streams, launches, memory."""

import numpy as np

from uncork.events import ArgColumn, EventTable, Kind, Strings, Track
from uncork.recording import Device, Flags, Recording

OPS_PER_STEP = 1_200
STEP_NS = 60_000_000
# Events per operator: frame, operator, inner operator, launch, kernel; every second one allocates.
PER_OP = 5.5


def recording(events: int, seed: int = 1) -> Recording:
    """Return a recording of about this many events; kernels and memory are drawn at random, nesting is exact."""
    random = np.random.default_rng(seed)
    steps = max(2, round(events / (OPS_PER_STEP * PER_OP)))
    count = steps * OPS_PER_STEP
    step = np.repeat(np.arange(steps), OPS_PER_STEP)
    place = np.tile(np.arange(OPS_PER_STEP), steps)
    slot = (STEP_NS - 15_000_000) // OPS_PER_STEP
    at = step * STEP_NS + 12_000_000 + place * slot
    frame = random.integers(slot // 2, slot - 200, count)
    op = (frame * 0.8).astype(np.int64)
    inner = (op * 0.7).astype(np.int64)
    launch = np.minimum(random.integers(2_000, 6_000, count), inner // 2)
    kernel = random.lognormal(9.6, 0.9, count).astype(np.int64) % 200_000 + 1_000
    start = np.empty(count, np.int64)
    free = 0
    for one, ready in enumerate((at + inner).tolist()):
        start[one] = free = max(ready, free)
        free += int(kernel[one])
    names = _Names()
    parts = [
        _part(
            names, Kind.USER_ANNOTATION, "ProfilerStep#{}", np.arange(steps), np.arange(steps) * STEP_NS, STEP_NS - 1, 0
        ),
        _part(names, Kind.CPU_OP, "enumerate(DataLoader)#_Iter.__next__", step[:0], step[:0], 0, 0),
        _part(names, Kind.PYTHON_FUNCTION, "model/layer_{}.py(31): forward", place % 96, at, frame, 0),
        _part(names, Kind.CPU_OP, "aten::operator_{}", place % 400, at + 200, op, 0),
        _part(names, Kind.CPU_OP, "aten::inner_{}", place % 500, at + 400, inner, 0),
        _part(names, Kind.RUNTIME, "cudaLaunchKernel", place * 0, at + 600, launch, 0),
        _part(names, Kind.KERNEL, "void gemm_kernel_{}<float, 128, 64>(Params)", place % 300, start, kernel, 1),
        _part(names, Kind.MEMORY, "[memory]", (place * 0)[::2], at[::2] + 500, 0, 0),
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    first = np.cumsum([0, *(len(part[0]) for part in parts)])
    linked = np.concatenate([first[5] + np.arange(count), first[6] + np.arange(count)])
    memory = first[7] + np.arange(len(at[::2]))
    curve = (2e9 + 1e9 * np.sin(place[::2] / OPS_PER_STEP * np.pi)).astype(np.int64) // 512 * 512
    args = {
        "correlation": ArgColumn(ints=(linked, np.tile(np.arange(1, count + 1), 2))),
        "Total Allocated": ArgColumn(ints=(memory, curve)),
        "Bytes": ArgColumn(ints=(memory, np.full(len(memory), 512))),
        "Device Type": ArgColumn(ints=(memory, np.ones(len(memory), np.int64))),
        "Device Id": ArgColumn(ints=(memory, np.zeros(len(memory), np.int64))),
    }
    table = EventTable(
        ts_ns=columns[2] + 1_700_000_000_000_000_000,
        dur_ns=columns[3],
        kind=columns[0].astype(np.uint8),
        name=columns[1].astype(np.int32),
        track=columns[4].astype(np.int32),
        tracks=(Track("1", "1", "python"), Track("0", "7", "stream 7")),
        strings=Strings.of(names.texts),
        args=args,
    )
    device = (Device(0, "NVIDIA A100-SXM4-80GB"),)
    return Recording("made up", "kineto", table, devices=device, flags=Flags(memory=True, stacks=True))


class _Names:
    """The distinct names, numbered."""

    def __init__(self) -> None:
        self.texts: list[str] = []


def _part(  # noqa: PLR0917 - one row of a table of kinds
    names: _Names, kind: Kind, pattern: str, which: np.ndarray, start: np.ndarray, dur: np.ndarray | int, track: int
) -> tuple[np.ndarray, ...]:
    """Return the columns kind, name, start, duration, track of one kind of event."""
    used, back = np.unique(which, return_inverse=True)
    first = len(names.texts)
    names.texts.extend(pattern.format(one) for one in used.tolist())
    length = np.broadcast_to(np.asarray(dur, np.int64), start.shape)
    return np.full(len(start), kind), first + back, start, length, np.full(len(start), track)
