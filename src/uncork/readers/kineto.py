"""Reads PyTorch profiler traces: Kineto of torch 1.8 to today, legacy autograd lists, Ascend's torch_npu."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from uncork.errors import UnreadableError
from uncork.events import EventTable, Kind
from uncork.readers.assemble import assemble
from uncork.readers.columns import distinct
from uncork.readers.metadata import devices_of, flags_of, groups_of, rank_of, versions_of, world_size_of
from uncork.readers.parallel import scan_file
from uncork.readers.selection import select
from uncork.readers.source import Progress
from uncork.recording import Recording

ORDER = 90
"""Asked after the readers of narrower formats, since any JSON may be a trace."""

_START = re.compile(rb"\s*(?:\{|\[\s*(?:\{|$))")
_STEP = re.compile("^ProfilerStep#")
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
    _refuse_empty(table, path)
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


def _refuse_empty(table: EventTable, path: Path) -> None:
    """Stop where nothing of PyTorch was recorded."""
    if table.of_kind(Kind.KERNEL, Kind.RUNTIME, Kind.PYTHON_FUNCTION).any():
        return
    lasting = ~table.of_kind(Kind.FLOW_START, Kind.FLOW_END, Kind.COUNTER, Kind.OVERHEAD)
    names = distinct(table.name[lasting], len(table.strings))
    if all(_is_profilers_own(table.strings.text(name)) for name in names):
        raise UnreadableError("trace_empty", path=path)
    if not table.of_kind(*_PYTORCH).any():
        raise UnreadableError("trace_of_another_tool", path=path)


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
