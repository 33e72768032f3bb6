"""Memory timelines: what ``export_memory_timeline`` writes as JSON, sizes by category or single events."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from uncork.errors import UnreadableError
from uncork.readers.source import Progress, Source
from uncork.recording import Recording
from uncork.snapshot import CATEGORIES, IntArray, MemoryTimeline

ORDER = 20
"""Before the traces: their readers take any JSON document."""
_BEGINNING = re.compile(rb"\s*\[\s*\[\s*-?\d+\s*[,\]]")
_MOST_BYTES = 512 << 20
"""Read whole; torch writes a few KB per step."""


def claims(head: bytes, path: Path) -> bool:  # noqa: ARG001 - the name says nothing
    """Return whether a file that begins like this is a memory timeline: lists of numbers, nothing named."""
    return _BEGINNING.match(head) is not None


def read(path: Path, progress: Progress | None = None) -> list[Recording]:
    """Return the recording of a memory timeline.

    Raises:
        UnreadableError: The file is damaged or holds other numbers.
    """
    import msgspec

    document = _document(path, progress)
    builders: tuple[Callable[[bytes], MemoryTimeline], ...] = (_from_sizes, _from_events)
    for build in builders:
        try:
            timeline = build(document)
        except (msgspec.DecodeError, ValueError, OverflowError, RecursionError):
            continue
        return [Recording(source=str(path), format="memory-timeline", snapshot=timeline)]
    raise UnreadableError("memory_timeline_damaged", path=path)


def _document(path: Path, progress: Progress | None) -> bytes:
    parts = []
    size = 0
    with Source(path, progress) as source:
        while chunk := source.read(1 << 20):
            parts.append(chunk)
            size += len(chunk)
            if size > _MOST_BYTES:
                raise UnreadableError("memory_timeline_large", path=path)
    return b"".join(parts)


def _from_sizes(document: bytes) -> MemoryTimeline:
    """Return a timeline from times in µs and sizes whose first column is empty."""
    import msgspec

    times, sizes = msgspec.json.decode(document, type=tuple[list[int], list[list[int]]])
    columns = np.array(sizes, np.int64).reshape(len(times), 1 + len(CATEGORIES))
    if not len(times):
        raise ValueError("nothing recorded")
    return _ordered(np.array(times, np.int64) * 1000, columns[:, 1:])


def _from_events(document: bytes) -> MemoryTimeline:
    """Return a timeline from (time in ns or -1, action, change in bytes, category): sizes add up from the changes."""
    import msgspec

    rows = msgspec.json.decode(document, type=list[tuple[int, int, int, int]])
    events = np.array(rows, np.int64).reshape(len(rows), 4)
    if not len(events) or not ((events[:, 3] >= 0) & (events[:, 3] < len(CATEGORIES))).all():
        raise ValueError("nothing recorded, or unknown categories")
    before = events[:, 0] < 0
    first = int(events[~before, 0].min()) if not before.all() else 0
    times = np.where(before, first, events[:, 0])
    order = np.argsort(times, kind="stable")
    change = np.zeros((len(events), len(CATEGORIES)), np.int64)
    change[np.arange(len(events)), events[order, 3]] = events[order, 2]
    sizes = np.cumsum(change, axis=0)
    last = np.append(np.diff(times[order]) > 0, True)
    return _ordered(times[order][last], sizes[last])


def _ordered(time_ns: IntArray, size_bytes: IntArray) -> MemoryTimeline:
    """Return a timeline in order of time; sizes under nothing, which lost events leave behind, become nothing."""
    order = np.argsort(time_ns, kind="stable")
    return MemoryTimeline(time_ns[order], np.maximum(size_bytes[order], 0))
