"""PortableScanner: trace events → columns in pure Python on msgspec; serves where the compiled scanner is not built."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from uncork.events import ArgColumn, Strings
from uncork.readers.columns import ABSENT, NOT_A_NUMBER, Scanned
from uncork.readers.tokens import HUGE_NS, NUMBER_STARTS, kind_of, nanoseconds, time_of

_NONE = msgspec.Raw(b"")
_NEXT_EVENT = re.compile(rb"\}\s*,\s*(?=\{)")
_EVENT_HERE = re.compile(rb"\s*\{")
_SMALLEST_BATCH_BYTES = 2048
_LARGEST_BATCH_BYTES = 1 << 20

_Key = TypeVar("_Key")


class _Event(msgspec.Struct, gc=False):
    """An event whose every value is still text."""

    ph: msgspec.Raw = _NONE
    cat: msgspec.Raw = _NONE
    name: msgspec.Raw = _NONE
    pid: msgspec.Raw = _NONE
    tid: msgspec.Raw = _NONE
    ts: msgspec.Raw = _NONE
    dur: msgspec.Raw = _NONE
    id: msgspec.Raw = _NONE
    bp: msgspec.Raw = _NONE
    args: dict[str, msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET


_EVENTS = msgspec.json.Decoder(list[_Event])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_WRONG = (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeDecodeError)


class _Ids(dict[_Key, int], Generic[_Key]):
    """Distinct texts or pairs and their indices, given in order of first sight."""

    def __missing__(self, key: _Key) -> int:
        """Return a new index for what was not seen before."""
        index = self[key] = len(self)
        return index


class PortableScanner:
    """Collects events into columns, a batch of the document at a time."""

    def __init__(self) -> None:
        self.repairs: Counter[str] = Counter()
        self._ids: _Ids[bytes] = _Ids()
        self._forms: _Ids[tuple[int, int]] = _Ids()
        self._tracks: _Ids[tuple[int, int]] = _Ids()
        self._rows = 0
        self._parts: dict[str, list[npt.NDArray[np.generic]]] = defaultdict(list)
        self._args: dict[str, _Argument] = {}
        self._reach = _LARGEST_BATCH_BYTES
        self._without_ends = b""
        self._whole = True
        self._huge = 0

    def feed(self, text: bytes, start: int) -> int:
        """Take as many whole events as possible from a place on; return the place after them.

        A batch ends where an event seems to end; decoding it proves that: a wrong guess leaves it unbalanced.
        """
        failed = len(text) + 1
        while True:
            stop = self._batch_end(text, start)
            if stop < 0 or stop >= failed:
                self._reach = _SMALLEST_BATCH_BYTES
                return start
            try:
                events = _EVENTS.decode(b"[" + text[start:stop] + b"]")
            except _WRONG:
                if stop - start <= _SMALLEST_BATCH_BYTES:
                    self._reach = _SMALLEST_BATCH_BYTES
                    return start
                self._reach = (stop - start) // 2
                failed = stop
                continue
            self._add(events)
            self._reach = min(self._reach * 2, _LARGEST_BATCH_BYTES)
            found = _NEXT_EVENT.match(text, stop - 1)
            start = found.end() if found else stop
            failed = len(text) + 1

    def take(self, text: bytes) -> bool:
        """Take one event given alone; return whether it could be read."""
        try:
            self._add(_EVENTS.decode(b"[" + text + b"]"))
        except _WRONG:
            try:
                fields = _OBJECT.decode(text)
                raw = fields.pop("args", _NONE)
                args = _OBJECT.decode(raw) if bytes(raw)[:1] == b"{" else msgspec.UNSET
            except _WRONG:
                return False
            self.repairs["odd_args"] += args is msgspec.UNSET
            known = {key: fields[key] for key in _Event.__struct_fields__ if key in fields}
            self._add([_Event(**known, args=args)])
        return True

    def finish(self, header: dict[str, object]) -> Scanned:
        """Return the columns."""
        columns = {
            key: np.concatenate(self._parts[key]) if self._parts[key] else np.empty(0, np.int64)
            for key in ("form", "name", "track", "ts", "dur")
        }
        texts = list(self._ids)
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
        return Scanned(
            form=columns["form"].astype(np.int32),
            forms=np.array(list(self._forms) or np.empty((0, 2)), np.int64),
            name=columns["name"].astype(np.int32),
            track=columns["track"].astype(np.int32),
            tracks=np.array(list(self._tracks) or np.empty((0, 2)), np.int64),
            ts_ns=columns["ts"].astype(np.int64),
            dur_ns=columns["dur"].astype(np.int64),
            args={key: argument.column() for key, argument in self._args.items()},
            strings=Strings(b"".join(texts), offsets),
            header=header,
            repairs=self.repairs,
            whole_numbers=self._whole,
            huge_times=self._huge,
        )

    def _batch_end(self, text: bytes, start: int) -> int:
        """Return where a batch of about the wanted size seems to end with an event, or -1."""
        if text is self._without_ends or not _EVENT_HERE.match(text, start):
            return -1
        last = -1
        reach = self._reach
        while last < 0:
            window = text[start : start + reach]
            tail = max(0, len(window) - (64 << 10))
            for found in _NEXT_EVENT.finditer(window, tail):
                last = found.start() + 1
            if last >= 0:
                return start + last
            if tail:
                for found in _NEXT_EVENT.finditer(window):
                    last = found.start() + 1
                if last >= 0:
                    return start + last
            if len(window) < reach:
                self._without_ends = text  # nor has it one behind any later place
                return -1
            reach *= 4
        return last

    def _add(self, events: list[_Event]) -> None:
        """Append a batch of events to the columns."""
        ids, parts = self._ids, self._parts
        forms = [(_phase(event.ph), _text_id(ids, event.cat)) for event in events]
        tracks = [(_token_id(ids, event.pid), _token_id(ids, event.tid)) for event in events]
        parts["form"].append(np.array([self._forms[form] for form in forms], np.int32))
        parts["track"].append(np.array([self._tracks[track] for track in tracks], np.int32))
        parts["name"].append(np.array([_text_id(ids, event.name) for event in events], np.int32))
        parts["ts"].append(self._times([bytes(event.ts) for event in events], starts=True))
        parts["dur"].append(self._times([bytes(event.dur) for event in events], starts=False))
        found: dict[str, tuple[list[int], list[bytes]]] = {}
        for row, event in enumerate(events, self._rows):
            if event.args is not msgspec.UNSET:
                for key, value in event.args.items():
                    _append(found, key, row, value)
            for key, value in (("@id", event.id), ("@bp", event.bp)):
                if value is not _NONE:
                    _append(found, key, row, value)
        for key, (rows, values) in found.items():
            self._args.setdefault(key, _Argument(ids)).add(np.array(rows, np.int64), values)
        self._rows += len(events)

    def _times(self, tokens: list[bytes], *, starts: bool) -> npt.NDArray[np.int64]:
        """Return times in ns."""
        joined = b" ".join(tokens)
        if self._whole and b"." in joined:
            self._whole = not any(time_of(token)[2] for token in tokens)
        if b'"' in joined:
            self.repairs["text_times"] += sum(token[:1] == b'"' for token in tokens)
        times = [nanoseconds(token) for token in tokens]
        for place, time in enumerate(times):
            if not -HUGE_NS < time < HUGE_NS and time not in (ABSENT, NOT_A_NUMBER):
                times[place], huge, _ = time_of(tokens[place])
                self._huge += huge and starts
        return np.array(times, np.int64)


def _phase(token: msgspec.Raw) -> int:
    text = bytes(token)
    if b"\\" in text:
        text = json.dumps(json.loads(text)).encode()
    return text[1] if len(text) == 3 and text[:1] == b'"' else 0


def _text_id(ids: _Ids[bytes], token: msgspec.Raw) -> int:
    text = bytes(token)
    return ids[text[1:-1]] if text[:1] == b'"' else -1


def _token_id(ids: _Ids[bytes], token: msgspec.Raw) -> int:
    """Return the index of a process or thread id, which is a number or a text."""
    text = bytes(token)
    if not text or text == b"null":
        return -1
    return ids[text[1:-1] if text[:1] == b'"' else text]


def _append(found: dict[str, tuple[list[int], list[bytes]]], key: str, row: int, value: msgspec.Raw) -> None:
    lists = found.get(key)
    if lists is None:
        lists = found[key] = ([], [])
    lists[0].append(row)
    lists[1].append(bytes(value))


class _Argument:
    """One key of ``args`` while it grows."""

    def __init__(self, ids: _Ids[bytes]) -> None:
        self._ids = ids
        self._parts: dict[str, list[tuple[npt.NDArray[np.int64], npt.NDArray[np.generic]]]] = defaultdict(list)

    def add(self, rows: npt.NDArray[np.int64], values: list[bytes]) -> None:
        """Append values of some rows, all of one type as a rule."""
        firsts = {value[:1] for value in values}
        if firsts == {b'"'}:
            self._put("texts", rows, (self._ids[value[1:-1]] for value in values))
        elif firsts <= {b"[", b"{"}:
            self._put("nested", rows, (self._ids[value] for value in values))
        else:
            self._add_mixed(rows, values, numbers=not firsts - NUMBER_STARTS)

    def _add_mixed(self, rows: npt.NDArray[np.int64], values: list[bytes], *, numbers: bool) -> None:
        if numbers:
            try:
                whole = np.array([int(value) for value in values], np.int64)
            except (ValueError, OverflowError):
                pass
            else:
                self._parts["ints"].append((rows, whole))
                return
        kinds = np.array([kind_of(value) for value in values])
        for kind in ("ints", "floats", "texts", "nested"):
            places = np.flatnonzero(kinds == kind)
            if len(places):
                chosen = [values[place] for place in places]
                if kind == "ints":
                    decoded: Iterable[float] = map(int, chosen)
                elif kind == "floats":
                    decoded = map(float, chosen)
                else:
                    decoded = (self._ids[value[1:-1] if kind == "texts" else value] for value in chosen)
                self._put(kind, rows[places], decoded)

    def _put(self, kind: str, rows: npt.NDArray[np.int64], values: Iterable[float]) -> None:
        self._parts[kind].append((rows, np.fromiter(values, np.float64 if kind == "floats" else np.int64, len(rows))))

    def column(self) -> ArgColumn:
        """Return the finished column."""
        joined = {
            kind: (np.concatenate([rows for rows, _ in parts]), np.concatenate([values for _, values in parts]))
            for kind, parts in self._parts.items()
            if parts
        }
        return ArgColumn(**joined)
