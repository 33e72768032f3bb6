"""The ways in which recordings break or differ: each returns damaged recordings, or None where it does not apply."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from uncork.events import DEVICE_KINDS, ArgColumn, EventTable, Kind, Strings
from uncork.readers.selection import select
from uncork.recording import Recording
from uncork.timeline import Timeline

Change = Callable[[EventTable], EventTable | None]
Damage = Callable[[Sequence[Recording]], "list[Recording] | None"]

SEED = 2026
MARK = re.compile(r"^ProfilerStep")
KNOWN_REGION = r"^(ProfilerStep|Optimizer|enumerate|DistributedDataParallel|nccl:|gloo:).*"
KNOWN_FRAME = r"^.*(torch[/\\]|<built-in|nn\.Module).*"
STALL_RATIO = 5
"""The stalled step is this many times as long as it was."""
STRAY_NS = 463_000_000
"""How long before everything else a stray kernel ran in a labelled trace."""
TIME_SLICE_NS = 4_000_000
"""What a scheduler gives another program at a time (Linux: 3 ms and more)."""
PREEMPTED_SHARE = 0.5
CLOCK_NS = 1_000_000
"""How far apart clocks of host and device are set."""


def each(change: Change) -> Damage:
    """Return a damage that is done to every rank alike; it applies where it changes any."""

    def damage(recordings: Sequence[Recording]) -> list[Recording] | None:
        done = [change(one.events) if one.events is not None else None for one in recordings]
        if all(table is None for table in done) or any(table is not None and not len(table) for table in done):
            return None
        return [
            one if table is None else replace(one, events=table, deep=None)
            for one, table in zip(recordings, done, strict=True)
        ]

    return damage


def without(share: float, *kinds: Kind) -> Damage:
    """Return a damage that drops a share of the events of some kinds (of all, without kinds), at random."""

    def change(table: EventTable) -> EventTable | None:
        of_kind = table.of_kind(*kinds) if kinds else np.ones(len(table), bool)
        lost = of_kind & (np.random.default_rng(SEED).random(len(table)) < share)
        return select(table, ~lost) if lost.any() else None

    return each(change)


def between(first: float, last: float, *, inside: bool = True, kinds: Sequence[Kind] = tuple(Kind)) -> Damage:
    """Return a damage that keeps, or loses, the events of some kinds that lie in a part of the recorded time.

    Ranks that were recorded at the same time are cut at the same moments.
    """

    def damage(recordings: Sequence[Recording]) -> list[Recording] | None:
        spans = [_span(one.events) for one in recordings if one.events is not None]
        common = max(low for low, _ in spans), min(high for _, high in spans)
        together = common[1] - common[0] > 0.5 * max(high - low for low, high in spans)

        def change(table: EventTable) -> EventTable | None:
            start, end = common if together else _span(table)
            low, high = start + first * (end - start), start + last * (end - start)
            if inside:
                lost = (table.ts_ns < low) | (table.end_ns > high)
            else:
                lost = (table.ts_ns >= low) & (table.ts_ns < high)
            lost &= table.of_kind(*kinds)
            return select(table, ~lost) if lost.any() and not lost.all() else None

        return each(change)(recordings)

    return damage


def _span(table: EventTable) -> tuple[int, int]:
    """Return (start, end) of a recording's work."""
    spans = table.of_kind(Kind.CPU_OP, Kind.RUNTIME, *DEVICE_KINDS)
    spans = spans if spans.any() else np.ones(len(table), bool)
    return int(table.ts_ns[spans].min()), int(table.end_ns[spans].max())


def one_step(table: EventTable) -> EventTable | None:
    """Return the middle one of several marked steps, with what it launched."""
    marks = _marks(table)
    if len(marks) < 2:
        return None
    row = marks[len(marks) // 2]
    low, high = table.ts_ns[row], table.end_ns[row]
    device = Timeline(Recording("", "kineto", events=table)).device
    inside = (table.ts_ns >= low) & (table.ts_ns < high) & ~table.of_kind(*DEVICE_KINDS)
    host = Timeline(Recording("", "kineto", events=table)).host
    linked = device.launch >= 0
    inside[device.row[linked]] = inside[host.row[device.launch[linked]]]
    inside[device.row[~linked]] = (device.start_ns[~linked] >= low) & (device.start_ns[~linked] < high)
    return select(table, inside)


def _marks(table: EventTable) -> npt.NDArray[np.int64]:
    """Return the rows of the host's step marks in order."""
    rows = np.flatnonzero(
        table.name_is(re.compile(r"^ProfilerStep")) & table.of_kind(Kind.USER_ANNOTATION, Kind.CPU_OP)
    )
    rows = rows[np.argsort(table.ts_ns[rows], kind="stable")]
    return rows[np.concatenate([[True], np.diff(table.ts_ns[rows]) > 0])] if len(rows) else rows


def unmarked(table: EventTable) -> EventTable | None:
    """Return a recording whose author never called ``prof.step()``."""
    marks = table.name_is(MARK)
    return select(table, ~marks) if marks.any() else None


def stalled(table: EventTable) -> EventTable | None:
    """Return a recording in whose second step the machine stood still for several steps' time."""
    marks = _marks(table)
    if len(marks) < 3:
        return None
    row = marks[1]
    middle = int(table.ts_ns[row] + table.dur_ns[row] // 2)
    pause = int((STALL_RATIO - 1) * table.dur_ns[row])
    ts, dur = table.ts_ns.copy(), table.dur_ns.copy()
    over = (ts < middle) & (table.end_ns > middle) & ~table.of_kind(*DEVICE_KINDS)
    dur[over] += pause
    ts[ts >= middle] += pause
    return replace(table, ts_ns=ts, dur_ns=dur)


def preempted(table: EventTable) -> EventTable | None:
    """Return a recording of a CPU whose other programs stopped this one at random moments, for half as long again."""
    if table.of_kind(*DEVICE_KINDS).any():
        return None
    start, end = _span(table)
    pauses = max(int((end - start) * PREEMPTED_SHARE / TIME_SLICE_NS), 1)
    when = np.sort(np.random.default_rng(SEED).integers(start, end, pauses))

    def later(moment: npt.NDArray[np.int64], side: Any) -> npt.NDArray[np.int64]:
        return moment + np.searchsorted(when, moment, side=side) * TIME_SLICE_NS

    ts = later(table.ts_ns, "right")
    return replace(table, ts_ns=ts, dur_ns=later(table.end_ns, "left") - ts)


def scaled(factor: float, table: EventTable) -> EventTable:
    """Return the same on a machine that is slower or faster in everything."""
    first = int(table.ts_ns.min())
    ts = first + ((table.ts_ns - first) * factor).astype(np.int64)
    end = first + ((table.end_ns - first) * factor).astype(np.int64)
    return replace(table, ts_ns=ts, dur_ns=end - ts)


def whole_microseconds(table: EventTable) -> EventTable:
    """Return times as old profilers write them."""
    return replace(table, ts_ns=table.ts_ns // 1000 * 1000, dur_ns=table.dur_ns // 1000 * 1000)


def flat(share: float, kinds: Sequence[Kind], table: EventTable) -> EventTable | None:
    """Return a recording that lost the durations of a share of the events of some kinds, as a conversion may."""
    lost = table.of_kind(*kinds) & (np.random.default_rng(SEED).random(len(table)) < share) & ~table.name_is(MARK)
    return replace(table, dur_ns=np.where(lost, 0, table.dur_ns)) if lost.any() else None


def mixed_up(table: EventTable) -> EventTable:
    """Return a recording in which a third of the names of each kind of event went to others of it."""
    chance, name = np.random.default_rng(SEED), table.name.copy()
    for kind in np.unique(table.kind):
        rows = np.flatnonzero((table.kind == kind) & (chance.random(len(table)) < 1 / 3))
        name[rows] = table.name[chance.permutation(rows)]
    return replace(table, name=name)


def stray(table: EventTable) -> EventTable | None:
    """Return a recording with its first device record (or operator) once more, long before everything else."""
    rows = np.flatnonzero(table.of_kind(*DEVICE_KINDS))
    rows = rows if len(rows) else np.flatnonzero(table.of_kind(Kind.CPU_OP))
    if not len(rows):
        return None
    row = rows[np.argmin(table.ts_ns[rows])]
    one = select(table, np.arange(len(table)) == row)
    return replace(
        table,
        ts_ns=np.append(table.ts_ns, one.ts_ns - STRAY_NS),
        dur_ns=np.append(table.dur_ns, one.dur_ns),
        kind=np.append(table.kind, one.kind),
        name=np.append(table.name, one.name),
        track=np.append(table.track, one.track),
    )


def twice(table: EventTable) -> EventTable:
    """Return a recording that holds every event twice, as two exports in one file do."""
    rows = np.arange(2 * len(table)) % len(table)
    again = [
        {
            key: (np.concatenate([part[0], part[0] + len(table)]), np.concatenate([part[1], part[1]]))
            for key in ("ints", "floats", "texts", "nested")
            if (part := getattr(column, key)) is not None
        }
        for column in table.args.values()
    ]
    return replace(
        table,
        ts_ns=table.ts_ns[rows],
        dur_ns=table.dur_ns[rows],
        kind=table.kind[rows],
        name=table.name[rows],
        track=table.track[rows],
        args={key: ArgColumn(**parts) for key, parts in zip(table.args, again, strict=True)},
    )


def reused_ids(table: EventTable) -> EventTable | None:
    """Return a recording whose correlation ids begin again and again, as counters of few bits do."""
    column = table.args.get("correlation")
    if column is None or column.ints is None:
        return None
    rows, values = column.ints
    return replace(table, args={**table.args, "correlation": ArgColumn(ints=(rows, values % 251))})


def one_thread(table: EventTable) -> EventTable | None:
    """Return a recording in which all host threads go by the same number."""
    host = ~table.of_kind(*DEVICE_KINDS, Kind.GPU_USER_ANNOTATION)
    tracks = np.unique(table.track[host])
    return replace(table, track=np.where(host, tracks[0], table.track).astype(np.int32)) if len(tracks) > 1 else None


def clock(shift_ns: int, table: EventTable) -> EventTable | None:
    """Return a recording whose device clock is off."""
    device = table.of_kind(*DEVICE_KINDS)
    return replace(table, ts_ns=table.ts_ns + shift_ns * device) if device.any() else None


def unlinked(keys: Sequence[str], table: EventTable) -> EventTable | None:
    """Return a recording without some arguments."""
    if not any(key in table.args for key in keys):
        return None
    return replace(table, args={key: column for key, column in table.args.items() if key not in keys})


def renamed(words: Sequence[tuple[str, str]], kinds: Sequence[Kind], table: EventTable) -> EventTable | None:
    """Return a recording with other names for events of some kinds: each pattern becomes its text, the first that fits.

    ``{}`` in the text is a number for each distinct name.
    """
    rows = np.flatnonzero(table.of_kind(*kinds))
    used, back = np.unique(table.name[rows], return_inverse=True)
    old = [table.strings.text(int(index)) for index in used]
    new = [_renamed(words, name, number) for number, name in enumerate(old)]
    if old == new:
        return None
    texts = [table.strings.text(index) for index in range(len(table.strings))]
    name = table.name.copy()
    name[rows] = (len(texts) + back).astype(np.int32)
    # Nested arguments keep their places in the table of texts.
    joined = Strings.of(new)
    strings = Strings(
        table.strings.blob[: int(table.strings.offsets[-1])] + joined.blob,
        np.concatenate([table.strings.offsets, table.strings.offsets[-1] + joined.offsets[1:]]),
    )
    return replace(table, name=name, strings=strings)


def _renamed(words: Sequence[tuple[str, str]], name: str, number: int) -> str:
    for pattern, text in words:
        changed, times = re.subn(pattern, text.replace("{}", str(number)), name)
        if times:
            return changed
    return name


def one_rank(place: int, recordings: Sequence[Recording]) -> list[Recording] | None:
    """Return one of several ranks; it still knows of how many."""
    if len(recordings) < 2:
        return None
    return [replace(recordings[place], world_size=recordings[place].world_size or len(recordings))]


ALL_NAMES = (Kind.CPU_OP, Kind.USER_ANNOTATION, Kind.RUNTIME, Kind.KERNEL, Kind.GPU_MEMCPY, Kind.GPU_MEMSET)
HIP = (
    (r"^cuda(\w+)$", r"hip\1"),
    (r"^cuLaunchKernel(Ex)?$", "hipExtModuleLaunchKernel"),
    (r"ncclKernel|ncclDevKernel", "ncclDevKernel_Generic_4"),
    (r"^\S*(gemm|cutlass)\S*.*$", "Cijk_Ailk_Bljk_SB_MT64x64x16_MI16x16x4x1_{}"),
    (r"^\S*(cudnn|conv|wgrad|dgrad)\S*.*$", "igemm_fwd_gtcx_nchw_fp32_{}"),
    (r"^Memcpy HtoD.*", "CopyHostToDevice"),
    (r"^Memcpy DtoH.*", "CopyDeviceToHost"),
    (r"^Memcpy DtoD.*", "CopyDeviceToDevice"),
    (r"^Memset.*", "FillBuffer"),
)
ASCEND = (
    (r"^cudaMemcpyAsync$", "AscendCL@aclrtMemcpyAsync"),
    (r"^cuda(Device|Stream|Event)Synchronize$", r"AscendCL@aclrtSynchronize\1"),
    (r"^cuda(Malloc|Free)$", r"AscendCL@aclrt\1"),
    (r"^(cuda|cu)\w*Launch\w*$", "Node@launch"),
    (r"ncclKernel\w*|ncclDevKernel\w*", "hcom_allReduce_"),
    (r"^\S*(gemm|cutlass)\S*.*$", "MatMulV2_{}"),
    (r"^\S*(cudnn|conv|wgrad|dgrad)\S*.*$", "Conv2D_{}"),
    (r"^.*elementwise.*$", "Mul_{}"),
    (r"^Memcpy (HtoD|DtoH|DtoD).*", r"MEMCPY_ASYNC \1"),
)

DAMAGES: dict[str, Damage] = {
    "tenth of events lost": without(0.1),
    "half of events lost": without(0.5),
    "tenth of device lost": without(0.1, *DEVICE_KINDS),
    "half of device lost": without(0.5, *DEVICE_KINDS),
    "most of device lost": without(0.9, *DEVICE_KINDS),
    "no device": without(1.0, *DEVICE_KINDS),
    "no kernels": without(1.0, Kind.KERNEL),
    "no copies": without(1.0, Kind.GPU_MEMCPY, Kind.GPU_MEMSET),
    "half of calls lost": without(0.5, Kind.RUNTIME),
    "no calls": without(1.0, Kind.RUNTIME),
    "half of operators lost": without(0.5, Kind.CPU_OP),
    "no operators": without(1.0, Kind.CPU_OP),
    "no regions": without(1.0, Kind.USER_ANNOTATION),
    "no frames": without(1.0, Kind.PYTHON_FUNCTION),
    "half of frames lost": without(0.5, Kind.PYTHON_FUNCTION),
    "no arrows": without(1.0, Kind.FLOW_START, Kind.FLOW_END),
    "first half": between(0.0, 0.5),
    "second half": between(0.5, 1.0),
    "middle third": between(1 / 3, 2 / 3),
    "hole in all": between(0.35, 0.65, inside=False),
    "hole in device": between(0.25, 0.75, inside=False, kinds=DEVICE_KINDS),
    "device ends early": between(0.4, 2.0, inside=False, kinds=DEVICE_KINDS),
    "hole in host": between(
        0.35, 0.65, inside=False, kinds=(Kind.CPU_OP, Kind.RUNTIME, Kind.USER_ANNOTATION, Kind.PYTHON_FUNCTION)
    ),
    "one step": each(one_step),
    "no step marks": each(unmarked),
    "stalled step": each(stalled),
    "first rank only": partial(one_rank, 0),
    "last rank only": partial(one_rank, -1),
    "no correlation": each(partial(unlinked, ("correlation",))),
    "no links at all": each(partial(unlinked, ("correlation", "External id"))),
    "no arguments": each(lambda table: replace(table, args={}) if table.args else None),
    "names of kernels hidden": each(partial(renamed, ((r"^.*$", "k{}"),), (Kind.KERNEL,))),
    "names of user hidden": each(
        partial(renamed, ((KNOWN_REGION, r"\g<0>"), (r"^.*$", "r{}")), (Kind.USER_ANNOTATION,))
    ),
    "frames of user hidden": each(
        partial(renamed, ((KNOWN_FRAME, r"\g<0>"), (r"^.*$", "f{}.py(1): g")), (Kind.PYTHON_FUNCTION,))
    ),
    "words of hip": each(partial(renamed, HIP, ALL_NAMES)),
    "words of Ascend": each(partial(renamed, ASCEND, ALL_NAMES)),
    "busy machine": each(preempted),
    "twice as slow": each(partial(scaled, 2.0)),
    "twice as fast": each(partial(scaled, 0.5)),
    "whole microseconds": each(whole_microseconds),
    "no lengths of device": each(partial(flat, 1.0, DEVICE_KINDS)),
    "third of lengths lost": each(partial(flat, 1 / 3, (Kind.CPU_OP, Kind.RUNTIME, *DEVICE_KINDS))),
    "third of names mixed up": each(mixed_up),
    "stray work before": each(stray),
    "every event twice": each(twice),
    "ids used again": each(reused_ids),
    "threads in one": each(one_thread),
    "device clock late": each(partial(clock, CLOCK_NS)),
    "device clock early": each(partial(clock, -CLOCK_NS)),
}
"""By name, in the order of the table."""
