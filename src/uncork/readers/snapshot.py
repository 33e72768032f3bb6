"""Memory snapshots: what ``torch.cuda.memory._dump_snapshot`` and ``memory_snapshot()`` give, as pickle or JSON."""

import json
from array import array
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from uncork.errors import UncorkError, UnreadableError
from uncork.readers.pickled import load
from uncork.readers.source import Progress, Source
from uncork.recording import Recording
from uncork.snapshot import (
    ACTIONS,
    STATES,
    AllocatorTrace,
    Blocks,
    IntArray,
    MemorySnapshot,
    Segments,
    Stacks,
)

_LARGEST = 2**63 - 1
_LARGEST_BYTES = 1 << 42
"""No device holds more; sums of such sizes stay within 64 bits."""
_MOST_JSON_BYTES = 256 << 20
"""JSON is no form torch writes; it is read whole, so it must be small."""
_OLDER_ACTIONS = {"free": "free_completed", "append": "other"}
_HINT = "Write one with torch.cuda.memory._dump_snapshot('snapshot.pickle')."


ORDER = 20
"""Before the traces: their readers take any JSON document."""


def claims(head: bytes, path: Path) -> bool:  # noqa: ARG001 - the name says nothing
    """Return whether a file that begins like this is a memory snapshot."""
    start = head.lstrip()
    if start[:1] == b"{":
        return b'"device_traces"' in head[:4096] or (b'"segments"' in head[:4096] and b'"total_size"' in head)
    if start[:1] == b"[":
        return b'"segment_type"' in head or (b'"total_size"' in head and b'"blocks"' in head)
    return head[:1] == b"\x80" or head[:3] in (b"(dp", b"(lp", b"}q\x00", b"]q\x00")


def read(path: Path, progress: Progress | None = None) -> list[Recording]:
    """Return the recording of a snapshot file.

    Raises:
        UnreadableError: The file is damaged, holds anything but plain values, or is no snapshot.
    """
    collected = _Collected()
    with Source(path, progress) as source:
        first = source.read(1)
        try:
            top = _from_json(source, first, collected) if first.lstrip()[:1] in b"{[" else None
            if top is None:
                top = load(_After(first, source), collected.take)
        except UncorkError as error:
            raise UnreadableError(f"{path}: cannot be read as a memory snapshot: {error.message}", _HINT) from error
    return [Recording(source=str(path), format="snapshot", snapshot=collected.snapshot(top, path))]


class _After:
    """Bytes that begin with some that were read already."""

    def __init__(self, first: bytes, rest: Source) -> None:
        self.first = first
        self.rest = rest

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next bytes."""
        first, self.first = self.first, b""
        return first or self.rest.read(wanted_bytes)


def _from_json(source: Source, first: bytes, collected: "_Collected") -> object:
    """Return the document, its dicts collected as they close."""
    parts = [first]
    size = 0
    while chunk := source.read(1 << 20):
        parts.append(chunk)
        size += len(chunk)
        if size > _MOST_JSON_BYTES:
            raise UnreadableError("a snapshot in JSON of this size is not supported.")

    def hook(item: dict[object, object]) -> dict[object, object]:
        collected.take(item)
        return item

    try:
        return json.loads(b"".join(parts), object_hook=hook, strict=False)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"damaged JSON ({error}).") from error


class _Stack(int):
    """The number of a stack, in place of its frames."""


class _Collected:
    """Columns that grow as the dicts of a snapshot are finished.

    A block, a segment and an action are told by the keys they have. Each is emptied once it is taken; the lists that
    hold them keep their length, which tells the devices apart.
    """

    def __init__(self) -> None:
        self.segments = {name: array("q") for name in _SEGMENT}
        self.blocks = {name: array("q") for name in _BLOCK}
        self.trace = {name: array("q") for name in _ACTION}
        self._append = tuple(column.append for column in self.trace.values())
        self.annotations: list[tuple[str, str, int]] = []
        self._actions = {name: code for code, name in enumerate(ACTIONS)}
        self._states = {name: code for code, name in enumerate(STATES)}
        self._strings: dict[str, str] = {}
        self._frames: dict[tuple[str, str, int], int] = {}
        self._frame_of: dict[int, tuple[int, object]] = {}
        self._stacks: dict[tuple[int, ...], int] = {(): 0}
        self._stack_of: dict[tuple[int, ...], _Stack] = {}

    def take(self, item: dict[object, object]) -> None:
        """Take what a finished dict says, and empty it."""
        if "action" in item:
            self._take_action(item)
        elif "state" in item:
            self._take_block(item)
        elif "total_size" in item:
            self._take_segment(item)
        elif "stage" in item and "time_us" in item:
            text = str(item.get("name")), str(item.get("stage")).lower(), _number(item.get("time_us")) * 1000
            self.annotations.append(text)
        else:
            return
        item.clear()

    def _take_action(self, item: Mapping[object, object]) -> None:
        word, time_us = item["action"], _number(item.get("time_us"), -1)
        word = _OLDER_ACTIONS.get(word, word) if isinstance(word, str) else "other"
        action, address, size, stream, when, stack, free = self._append
        action(self._actions.get(word, 0))
        address(_number(item.get("addr")))
        size(_size(item.get("size")))
        stream(_number(item.get("stream")))
        when(time_us * 1000 if 0 <= time_us < _LARGEST // 1000 else -1)
        stack(self._stack(item.get("frames")))
        free(_number(item.get("device_free"), -1))

    def _take_block(self, item: Mapping[object, object]) -> None:
        size = _size(item.get("size"))
        # Before torch 2.1 a block kept its stack and real size in a list of former owners.
        history = item.get("history")
        former = history[-1] if isinstance(history, list) and history and isinstance(history[-1], dict) else {}
        requested = _number(item.get("requested_size", former.get("real_size")), size)
        state = item["state"]
        state = "active_awaiting_free" if state == "active_pending_free" else state
        row = (
            len(self.segments["device"]),
            _number(item.get("address", former.get("addr")), -1),
            size,
            min(max(requested, 0), size),
            self._states.get(state, 0) if isinstance(state, str) else 0,
            self._stack(item.get("frames", former.get("frames"))),
        )
        for column, value in zip(self.blocks.values(), row, strict=True):
            column.append(value)

    def _take_segment(self, item: Mapping[object, object]) -> None:
        """Take a segment; its blocks were finished just before it."""
        row = (
            _number(item.get("device")),
            _number(item.get("address")),
            _size(item.get("total_size")),
            _number(item.get("stream")),
            int(item.get("segment_type") == "small"),
            int(bool(item.get("is_expandable"))),
        )
        for column, value in zip(self.segments.values(), row, strict=True):
            column.append(value)

    def _stack(self, frames: object) -> int:
        """Return the number of a stack; equal stacks have the same.

        Actions may share one list of frames, so a list is left with its number in place of its frames.
        """
        if not isinstance(frames, list) or not frames:
            return 0
        if isinstance(frames[0], _Stack):
            return frames[0]
        key = tuple(map(id, frames))
        known = self._stack_of.get(key)
        if known is None:
            inner = tuple(self._frame(frame) for frame in frames)
            known = _Stack(self._stacks.setdefault(inner, len(self._stacks)))
            self._stack_of[key] = known
        frames[:] = [known]
        return known

    def _frame(self, frame: object) -> int:
        """Return the number of a frame; its object is kept, emptied, so that its identity stays its own."""
        known = self._frame_of.get(id(frame))
        if known is not None:
            return known[0]
        name, file, line = "??", "??", 0
        if isinstance(frame, dict):
            name, file = str(frame.get("name", "??")), str(frame.get("filename", "??"))
            name, file = self._strings.setdefault(name, name), self._strings.setdefault(file, file)
            line = _number(frame.get("line"))
            frame.clear()
        number = self._frames.setdefault((name, file, line), len(self._frames))
        self._frame_of[id(frame)] = number, frame
        return number

    def snapshot(self, top: object, path: Path) -> MemorySnapshot:
        """Return what was collected, given the emptied document; host memory (torch 2.14) is left out."""
        document = top if isinstance(top, dict) else {"segments": top}
        segments, traces = document.get("segments"), document.get("device_traces")
        if not isinstance(segments, list) or not (self.segments["device"] or isinstance(traces, list)):
            raise UnreadableError(f"{path}: holds plain values, but no memory snapshot.", _HINT)
        settings = document.get("allocator_settings")
        mine = _place(document, "segments", len(self.segments["device"]))
        return MemorySnapshot(
            segments=self._segment_columns(mine),
            blocks=self._block_columns(mine),
            trace=self._trace_columns(traces, _place(document, "device_traces", len(self.trace["action"]))),
            stacks=self._stack_columns(),
            has_history=isinstance(traces, list),
            annotations=tuple(self.annotations),
            settings={str(key): str(value) for key, value in settings.items()} if isinstance(settings, dict) else {},
        )

    def _segment_columns(self, mine: slice) -> Segments:
        columns = {name: _ints(column)[mine] for name, column in self.segments.items()}
        return Segments(
            **{name: columns[name] for name in ("device", "address", "size_bytes", "stream")},
            small=columns["small"] > 0,
            expandable=columns["expandable"] > 0,
        )

    def _block_columns(self, mine: slice) -> Blocks:
        """Return the blocks; those without an address (torch before 2.1) follow one another in their segment."""
        columns = {name: _ints(column) for name, column in self.blocks.items()}
        kept = (columns["segment"] >= mine.start) & (columns["segment"] < mine.stop)
        columns = {name: column[kept] for name, column in columns.items()}
        columns["segment"] = segment = columns["segment"] - mine.start
        size = columns["size_bytes"]
        if len(segment):
            before = np.cumsum(size) - size
            start = _ints(self.segments["address"])[mine][segment] + before - before[np.searchsorted(segment, segment)]
            columns["address"] = np.where(columns["address"] < 0, start, columns["address"])
        return Blocks(**columns)

    def _trace_columns(self, traces: object, mine: slice) -> AllocatorTrace:
        columns = {name: _ints(column)[mine] for name, column in self.trace.items()}
        lengths = [len(one) if isinstance(one, list) else 0 for one in traces] if isinstance(traces, list) else []
        device = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
        count = len(columns["action"])
        if len(device) != count:
            device = np.zeros(count, np.int64)
        return AllocatorTrace(device=device, **columns)

    def _stack_columns(self) -> Stacks:
        lengths = [len(stack) for stack in self._stacks]
        return Stacks(
            function=tuple(name for name, _, _ in self._frames),
            file=tuple(file for _, file, _ in self._frames),
            line=np.array([line for _, _, line in self._frames], np.int64),
            frame=np.fromiter((frame for stack in self._stacks for frame in stack), np.int64, sum(lengths)),
            offsets=np.cumsum([0, *lengths]).astype(np.int64),
        )


def _place(document: Mapping[object, object], wanted: str, count: int) -> slice:
    """Return which of the collected rows belong to a part of the document; parts of one kind come one after another.

    Args:
        document: The emptied document.
        wanted: ``segments`` or ``device_traces``; others of the kind end in the same word (``host_segments``).
        count: Rows collected in all.
    """
    kind, begin = wanted.rpartition("_")[2], 0
    for name, value in document.items():
        if isinstance(value, list) and isinstance(name, str) and name.endswith(kind):
            size = sum(len(one) if isinstance(one, list) else 1 for one in value)
            if name == wanted and begin + size <= count:
                return slice(begin, begin + size)
            begin += size
    return slice(0, count)


_SEGMENT = ("device", "address", "size_bytes", "stream", "small", "expandable")
_BLOCK = ("segment", "address", "size_bytes", "requested_bytes", "state", "stack")
_ACTION = ("action", "address", "size_bytes", "stream", "time_ns", "stack", "device_free_bytes")


def _number(value: object, missing: int = 0) -> int:
    """Return a whole number that fits 64 bits; larger ones end at the largest."""
    if type(value) is int and -_LARGEST <= value <= _LARGEST:
        return value
    if not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124 - NaN
        return missing
    if isinstance(value, float):
        value = max(min(value, 2.0**62), -(2.0**62))
    return max(-_LARGEST, min(int(value), _LARGEST))


def _size(value: object) -> int:
    """Return a size in bytes: never negative, never more than any device holds."""
    return max(0, min(_number(value), _LARGEST_BYTES))


def _ints(column: "array[int]") -> IntArray:
    return np.frombuffer(column, np.int64).copy() if len(column) else np.empty(0, np.int64)
