"""Reads PyTorch profiler traces: Kineto of torch 1.8 to today, legacy autograd lists, Ascend's torch_npu."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from uncork.errors import UnreadableError
from uncork.events import EventTable, Kind
from uncork.quantiles import median
from uncork.readers.assemble import assemble
from uncork.readers.columns import Scanned, distinct
from uncork.readers.metadata import devices_of, flags_of, groups_of, rank_of, versions_of, world_size_of
from uncork.readers.parallel import scan_file
from uncork.readers.selection import select
from uncork.readers.source import Progress
from uncork.recording import Recording

ORDER = 90
"""Asked after the readers of narrower formats, since any JSON may be a trace."""

_START = re.compile(rb"\s*(?:\{|\[\s*(?:\{|$))")
_STEP = re.compile("^ProfilerStep#")
_SHORTEST_NS = ((Kind.CPU_OP, 100), (Kind.KERNEL, 300))
"""Half of all operators take longer than this, and half of all kernels (dispatching takes over 100 ns, the emptiest
kernel 700; the shortest medians in 120 real traces: 270 and 1,760). Times in ms or s, read as µs, do not."""
_ENOUGH_TO_TELL = 20
_SAMPLE = 1000
_UNITRACE = re.compile(r"(?:RANK \d+ )?(?:HOST|DEVICE)<")
"""How Intel's unitrace names processes; it writes its calls as PyTorch's operators are written."""
_PYTORCH = (
    Kind.CPU_OP,
    Kind.USER_ANNOTATION,
    Kind.PYTHON_FUNCTION,
    Kind.RUNTIME,
    Kind.KERNEL,
    Kind.GPU_MEMCPY,
    Kind.GPU_MEMSET,
)


def claims(head: bytes, path: Path) -> bool:
    """Return whether a file begins as a trace document does."""
    del path
    return _START.match(head) is not None


def read(path: Path, progress: Progress | None = None) -> list[Recording]:
    """Return the recordings of the ranks in a trace file.

    Args:
        path: The file, packed or not.
        progress: Told how far reading has come.
    """
    scanned = scan_file(path, progress)
    table, repairs = assemble(scanned)
    _refuse_empty(table, scanned, path)
    _refuse_unit(table, path)
    _refuse_equal(table, path)
    _refuse_mixed(table, path)
    form = _format(table, scanned.header)
    if form == "ascend":
        del repairs["text_times"]  # torch_npu always writes times as text
    recordings = []
    for rank, events in _by_rank(table):
        recordings.append(
            Recording(
                source=str(path),
                format=form,
                events=events,
                rank=rank_of(scanned.header, path) if rank is None else rank,
                world_size=world_size_of(scanned.header),
                devices=devices_of(scanned.header),
                flags=flags_of(scanned.header, events),
                versions=versions_of(scanned.header),
                groups=groups_of(scanned.header, events),
                repairs=dict(repairs),
            )
        )
    return recordings


def _refuse_empty(table: EventTable, scanned: Scanned, path: Path) -> None:
    """Stop where nothing of PyTorch was recorded, or nothing of it can be read."""
    if len(scanned) and not scanned.forms[:, 0].any():
        raise UnreadableError("json_without_events", path=path)
    if any(_UNITRACE.match(track.name) for track in table.tracks):
        raise UnreadableError("foreign_unitrace", path=path)
    if table.of_kind(Kind.KERNEL, Kind.RUNTIME, Kind.PYTHON_FUNCTION).any():
        return
    lasting = ~table.of_kind(Kind.FLOW_START, Kind.FLOW_END, Kind.COUNTER, Kind.OVERHEAD)
    names = distinct(table.name[lasting], len(table.strings))
    is_empty = all(_is_profilers_own(table.strings.text(name)) for name in names)
    if not is_empty and table.of_kind(*_PYTORCH).any():
        return
    left_out = len(scanned) - np.count_nonzero(scanned.in_phase("ME")) - len(table)
    left_out += scanned.repairs["unreadable_events"]
    if left_out > len(table):
        raise UnreadableError("events_unreadable", path=path, count=left_out)
    empty = "trace_cut" if scanned.repairs["cut_file"] else "trace_empty"
    raise UnreadableError(empty if is_empty else "trace_of_another_tool", path=path)


def _refuse_unit(table: EventTable, path: Path) -> None:
    """Stop where times are shorter than anything takes: they were written in ms or s, and digits are lost."""
    for kind, least_ns in _SHORTEST_NS:
        took_ns = table.dur_ns[table.of_kind(kind)]
        count = len(took_ns)
        took_ns = took_ns[took_ns > 0]  # 0 is also what old versions leave of less than 1 µs
        few = 0 < len(took_ns) < _ENOUGH_TO_TELL <= count
        if few or len(took_ns) >= _ENOUGH_TO_TELL:
            usual_ns = took_ns.max() if few else median(took_ns)
            if usual_ns < least_ns:
                raise UnreadableError("times_too_short", path=path, usual_ns=int(usual_ns))


def _refuse_equal(table: EventTable, path: Path) -> None:
    """Stop where most things begin at one time, as where times went through a spreadsheet or a 32-bit number."""
    some = slice(None, None, max(1, len(table) // _SAMPLE))
    starts = table.ts_ns[some][np.isin(table.kind[some], _PYTORCH) & (table.dur_ns[some] > 0)]
    half = len(starts) // 2  # what most have in common lies in the middle
    if len(starts) >= _ENOUGH_TO_TELL and np.count_nonzero(starts == np.partition(starts, half)[half]) > half:
        raise UnreadableError("times_equal", path=path)


def _is_profilers_own(name: str) -> bool:
    return name.startswith(("PyTorch Profiler", "Iteration Start:", "Record Window End"))


def _refuse_mixed(table: EventTable, path: Path) -> None:
    """Stop where two processes were merged under one id: their times cannot be told apart."""
    steps = np.flatnonzero(table.name_is(_STEP, Kind.USER_ANNOTATION))
    order = steps[np.lexsort((table.ts_ns[steps], table.name[steps], table.track[steps]))]
    first, then = order[:-1], order[1:]
    same = (table.track[first] == table.track[then]) & (table.name[first] == table.name[then])
    if (same & (table.ts_ns[then] < table.end_ns[first])).any():
        raise UnreadableError("ranks_mixed", path=path)


def _format(table: EventTable, header: Mapping[str, object]) -> str:
    names = {track.name for track in table.tracks} | {track.pid for track in table.tracks}
    if "CPU functions" in names or "CUDA functions" in names:
        return "legacy"
    if any(key.startswith(("Model Id", "Task Type")) for key in table.args) and "schemaVersion" not in header:
        return "ascend"
    return "kineto"


def _by_rank(table: EventTable) -> list[tuple[int | None, EventTable]]:
    """Return the table, or where a merge wrote each event's rank into its args, one table per rank."""
    if "rank" not in table.args:
        return [(None, table)]
    rank = table.ints("rank")
    ranks = np.unique(rank[rank >= 0])
    known = np.count_nonzero(rank >= 0)
    if len(ranks) < 2 or known < 0.9 * len(table):
        return [(None, table)]
    return [(int(value), select(table, rank == value)) for value in ranks]
