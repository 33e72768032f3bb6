"""Memory snapshots: what ``torch.cuda.memory._dump_snapshot`` and ``memory_snapshot()`` give, as pickle or JSON."""

import json
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
_FREE_VALUES = 100_000
_BYTES_PER_VALUE = 7
"""A value of a snapshot and its key take 10 bytes of JSON and more."""
_OLDER_ACTIONS = {"free": ACTIONS.index("free_completed")}
"""Before torch 2.1."""


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
            raise UnreadableError("snapshot_unreadable", path=path, reason=error) from error
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
            raise UnreadableError("snapshot_json_large")

    text = b"".join(parts)
    if sum(map(text.count, (b"{", b"[", b","))) > _FREE_VALUES + len(text) // _BYTES_PER_VALUE:
        raise UnreadableError("snapshot_bomb")
    try:
        return json.loads(text, object_hook=collected.take, strict=False)
    except (ValueError, RecursionError) as error:
        raise UnreadableError("json_damaged", reason=error) from error


class _Stack(int):
    """The number of a stack, in place of its frames."""


class _Frame(int):
    """The number of a frame, in place of its dict."""


_TAKEN: dict[object, object] = {}
"""In place of a dict whose row was taken."""


class _Collected:
    """Rows of the three tables, one after another, that grow as the dicts of a snapshot are finished.

    A block, a segment and an action are told by the keys they have. Each is emptied once it is taken; the lists that
    hold them keep their length, which tells the devices apart.
    """

    def __init__(self) -> None:
        self.segments, self.blocks, self.trace = array("q"), array("q"), array("q")
        self.annotations: list[tuple[str, str, int]] = []
        self._actions = {name: code for code, name in enumerate(ACTIONS)} | _OLDER_ACTIONS
        self._states = {name: code for code, name in enumerate(STATES)}
        self._strings: dict[str, str] = {}
        self._frames: dict[tuple[str, str, int], _Frame] = {}
        self._stacks: dict[tuple[int, ...], int] = {(): 0}

    def take(self, item: dict[object, object]) -> object:
        """Take what a finished dict says, and empty it; return what may stand in its place."""
        if "action" in item:
            self._take_action(item)
        elif "filename" in item:
            return self._take_frame(item)
        elif "state" in item:
            self._take_block(item)
        elif "total_size" in item:
            self._take_segment(item)
        elif "stage" in item and "time_us" in item:
            name, stage = _text(item.get("name")), _text(item["stage"])
            self.annotations.append((name, stage.lower(), _number(item["time_us"]) * 1000))
        else:
            return item
        item.clear()
        return _TAKEN

    def _take_action(self, item: Mapping[object, Any]) -> None:
        get, word = item.get, item["action"]
        address, size, stream, time_us = get("addr", 0), get("size", 0), get("stream", 0), get("time_us", -1)
        plain = type(address) is type(size) is type(stream) is type(time_us) is int
        if not (plain and 0 <= size <= _LARGEST_BYTES and 0 <= address <= _LARGEST and 0 <= stream <= _LARGEST):
            address, size, stream, time_us = _number(address), _size(size), _number(stream), _number(time_us, -1)
        self.trace.extend(
            (
                self._actions.get(word, 0) if isinstance(word, str) else 0,
                address,
                size,
                stream,
                time_us * 1000 if 0 <= time_us < _LARGEST // 1000 else -1,
                self._stack(get("frames")),
                _number(get("device_free"), -1),
            )
        )

    def _take_block(self, item: Mapping[object, object]) -> None:
        size = _size(item.get("size"))
        # Before torch 2.1 a block kept its stack and real size in a list of former owners.
        history = item.get("history")
        former = history[-1] if isinstance(history, list) and history and isinstance(history[-1], dict) else {}
        requested = _number(item.get("requested_size", former.get("real_size")), size)
        state = item["state"]
        state = "active_awaiting_free" if state == "active_pending_free" else state
        self.blocks.extend(
            (
                len(self.segments) // len(_SEGMENT),
                _number(item.get("address", former.get("addr")), -1),
                size,
                min(max(requested, 0), size),
                self._states.get(state, 0) if isinstance(state, str) else 0,
                self._stack(item.get("frames", former.get("frames"))),
            )
        )

    def _take_segment(self, item: Mapping[object, object]) -> None:
        """Take a segment; its blocks were finished just before it."""
        self.segments.extend(
            (
                _number(item.get("device")),
                _number(item.get("address")),
                _size(item.get("total_size")),
                _number(item.get("stream")),
                int(item.get("segment_type") == "small"),
                int(bool(item.get("is_expandable"))),
            )
        )

    def _stack(self, frames: object) -> int:
        """Return the number of a stack; equal stacks have the same.

        Actions may share one list of frames, so a list is left with its number in place of its frames.
        """
        if not isinstance(frames, list) or not frames:
            return 0
        if isinstance(frames[0], _Stack):
            return frames[0]
        inner = tuple(map(self._frame, frames))
        known = _Stack(self._stacks.setdefault(inner, len(self._stacks)))
        frames[:] = [known]
        return known

    def _frame(self, frame: object) -> int:
        """Return the number of a frame."""
        if isinstance(frame, _Frame):
            return frame
        found = frame.get(_Frame) if isinstance(frame, dict) else None
        return found if isinstance(found, _Frame) else self._take_frame(frame if isinstance(frame, dict) else {})

    def _take_frame(self, frame: dict[object, object]) -> _Frame:
        """Return the number of a frame's function, file and line; its dict is left with the number alone."""
        name, file = _text(frame.get("name")), _text(frame.get("filename"))
        name, file = self._strings.setdefault(name, name), self._strings.setdefault(file, file)
        key = name, file, _number(frame.get("line"))
        number = self._frames.get(key)
        if number is None:
            number = self._frames[key] = _Frame(len(self._frames))
        frame.clear()
        frame[_Frame] = number
        return number

    def snapshot(self, top: object, path: Path) -> MemorySnapshot:
        """Return what was collected, given the emptied document; host memory (torch 2.14) is left out."""
        document = top if isinstance(top, dict) else {"segments": top}
        segments, traces = document.get("segments"), document.get("device_traces")
        if not isinstance(segments, list) or not (self.segments or isinstance(traces, list)):
            raise UnreadableError("no_snapshot", path=path)
        settings = document.get("allocator_settings")
        mine = _place(document, "segments", len(self.segments) // len(_SEGMENT))
        held = _place(document, "device_traces", len(self.trace) // len(_ACTION))
        own = _columns(self.segments, _SEGMENT, mine)
        return MemorySnapshot(
            segments=Segments(small=own.pop("small") > 0, expandable=own.pop("expandable") > 0, **own),
            blocks=self._block_columns(mine, own["address"]),
            trace=self._trace_columns(traces, held),
            stacks=self._stack_columns(),
            has_history=isinstance(traces, list),
            annotations=tuple(self.annotations),
            settings={str(key): str(value) for key, value in settings.items() if isinstance(value, (str, int))}
            if isinstance(settings, dict)
            else {},
        )

    def _block_columns(self, mine: slice, start: IntArray) -> Blocks:
        """Return the blocks; those without an address (torch before 2.1) follow one another in their segment.

        Args:
            mine: The segments that are a device's.
            start: Where each of them starts.
        """
        columns = _columns(self.blocks, _BLOCK)
        kept = (columns["segment"] >= mine.start) & (columns["segment"] < mine.stop)
        columns = {name: column[kept] for name, column in columns.items()}
        columns["segment"] = segment = columns["segment"] - mine.start
        size = columns["size_bytes"]
        if len(segment):
            before = np.cumsum(size) - size
            follows = start[segment] + before - before[np.searchsorted(segment, segment)]
            columns["address"] = np.where(columns["address"] < 0, follows, columns["address"])
        return Blocks(**columns)

    def _trace_columns(self, traces: object, mine: slice) -> AllocatorTrace:
        columns = _columns(self.trace, _ACTION, mine)
        lengths = [len(one) if isinstance(one, list) else 0 for one in traces] if isinstance(traces, list) else []
        count = len(columns["action"])
        # A list may be named more often than it was filled: then the lengths say nothing, and may be endless.
        told = sum(lengths) == count
        device = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths) if told else np.zeros(count, np.int64)
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


def _text(value: object) -> str:
    """Return a text; anything else, which may be nested without end, is not written out."""
    return value if isinstance(value, str) else "??"


def _size(value: object) -> int:
    """Return a size in bytes: never negative, never more than any device holds."""
    return max(0, min(_number(value), _LARGEST_BYTES))


def _columns(rows: "array[int]", names: tuple[str, ...], mine: slice = slice(None)) -> dict[str, IntArray]:
    """Return the columns of some rows that lie one after another."""
    table = np.frombuffer(rows, np.int64) if rows else np.empty(0, np.int64)
    table = table.reshape(-1, len(names))[mine]
    return {name: table[:, place].copy() for place, name in enumerate(names)}
