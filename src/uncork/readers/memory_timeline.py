"""Memory timelines: what ``export_memory_timeline`` writes as JSON, sizes by category or single events."""

import re
import warnings
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
_SIZES = re.compile(rb"\s*\[\s*(\[[^\[\]]*\])\s*,\s*(\[.*\])\s*\]\s*", re.DOTALL)
_DIGITS = b"0123456789- \t\r\n"
_NO_BRACKETS = bytes.maketrans(b"[]", b"  ")
_NO_NUMBER = 2**63 - 1
"""What numpy makes of larger ones."""
_LARGEST_US = 9_200_000_000_000_000
"""Times in µs stay within 64 bits as ns (the year 2261)."""
_LARGEST_BYTES = 1 << 42
"""No device holds more."""
_SUMMABLE = 1 << 62
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
    with Source(path, progress) as source:
        document = source.whole(_MOST_BYTES, "memory_timeline_large")
    builders: tuple[Callable[[bytes], MemoryTimeline], ...] = (_from_sizes, _from_events)
    for build in builders:
        try:
            timeline = build(document)
        except ValueError:
            continue
        return [Recording(source=str(path), format="memory-timeline", snapshot=timeline)]
    raise UnreadableError("memory_timeline_damaged", path=path)


def _from_sizes(document: bytes) -> MemoryTimeline:
    """Return a timeline from times in µs and sizes whose first column is empty: ``[[t, …], [[0, b, …], …]]``."""
    found = _SIZES.fullmatch(document)
    if found is None or not _is_rows_of(1 + len(CATEGORIES), found[2]):
        raise ValueError("no list of times before one of sizes")
    times, sizes = _numbers(found[1]), _numbers(found[2])
    columns = sizes.reshape(len(times), 1 + len(CATEGORIES))
    if int(np.abs(times).max()) >= _LARGEST_US:
        raise ValueError("no times")
    order = np.argsort(times, kind="stable")
    return MemoryTimeline(times[order] * 1000, _within_bounds(columns[order, 1:]))


def _from_events(document: bytes) -> MemoryTimeline:
    """Return a timeline from (time in ns or -1, action, change in bytes, category): sizes add up from the changes."""
    if not _is_rows_of(4, document):
        raise ValueError("no rows of four")
    events = _numbers(document).reshape(-1, 4)
    if not ((events[:, 3] >= 0) & (events[:, 3] < len(CATEGORIES))).all():
        raise ValueError("unknown categories")
    if len(events) * int(np.abs(events[:, 2]).max()) >= _SUMMABLE:
        raise ValueError("more than any device holds")
    before = events[:, 0] < 0
    first = int(events[~before, 0].min()) if not before.all() else 0
    times = np.where(before, first, events[:, 0])
    order = np.argsort(times, kind="stable")
    times, change, category = times[order], events[order, 2], events[order, 3]
    last = np.append(np.diff(times) > 0, True)
    sizes = np.empty((int(last.sum()), len(CATEGORIES)), np.int64)
    for code in range(len(CATEGORIES)):
        sizes[:, code] = np.cumsum(np.where(category == code, change, 0))[last]
    return MemoryTimeline(times[last], _within_bounds(sizes))


def _is_rows_of(length: int, text: bytes) -> bool:
    """Return whether a text is a list of lists of so many numbers, told by what is left without the numbers."""
    frame = text.translate(None, _DIGITS)
    row = b"[" + b"," * (length - 1) + b"]"
    return frame == b"[" + b",".join([row] * frame.count(row)) + b"]"


def _numbers(text: bytes) -> IntArray:
    """Return the whole numbers of nested lists in order, as fast and as small as numpy reads them.

    Lists as objects would take twenty times the file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = np.fromstring(text.translate(_NO_BRACKETS), np.int64, sep=",")
        except DeprecationWarning as warning:
            raise ValueError("not lists of whole numbers") from warning
    if len(found) != text.count(b",") + 1 or int(found.max()) == _NO_NUMBER or int(found.min()) <= -_NO_NUMBER:
        raise ValueError("empty places, or numbers beyond 64 bits")
    return found


def _within_bounds(size_bytes: IntArray) -> IntArray:
    """Return sizes, changed in place: under nothing, which lost events leave behind, is nothing."""
    np.clip(size_bytes, 0, _LARGEST_BYTES, out=size_bytes)
    return size_bytes
