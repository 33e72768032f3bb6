"""EventTable: one recording's events as columns; and what each column means."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
NameTest = str | frozenset[str] | re.Pattern[str] | Callable[[str], bool]
"""What a name can be asked."""


class Kind(IntEnum):
    """What an event is, in Kineto's words; readers translate each vendor's and version's vocabulary to it."""

    OTHER = 0
    CPU_OP = 1
    """An operator on the host: ``aten::mm``, ``autograd::engine::evaluate_function: …``, a c10d call."""
    USER_ANNOTATION = 2
    """A named region on the host: ``record_function``, ``ProfilerStep#3``, ``Optimizer.step#AdamW.step``."""
    PYTHON_FUNCTION = 3
    """A Python frame: ``train.py(12): forward``, ``nn.Module: Linear_0``."""
    RUNTIME = 4
    """A call of the device's runtime or driver: ``cudaLaunchKernel``, ``hipMemcpyAsync``, ``aclrtSynchronize``."""
    KERNEL = 5
    """Work on a device stream other than copies and fills; collectives too."""
    GPU_MEMCPY = 6
    GPU_MEMSET = 7
    GPU_USER_ANNOTATION = 8
    """A host region's shadow on a device stream; never device work."""
    SYNC = 9
    """A synchronisation record on the device side (``cuda_sync``); never device work."""
    MEMORY = 10
    """An allocation (instant): args ``Addr Bytes Total Allocated Total Reserved Device Type Device Id``."""
    FLOW_START = 11
    FLOW_END = 12
    """The two ends of an arrow: ``name`` is the flow's category (``ac2g``, ``fwdbwd``), arg ``@id`` joins them."""
    COUNTER = 13
    OVERHEAD = 14
    """The profiler's own work: buffer flushes, CUPTI set-up."""
    GC = 15
    """Python's garbage collector."""


DEVICE_KINDS = (Kind.KERNEL, Kind.GPU_MEMCPY, Kind.GPU_MEMSET)
"""Work on a device's streams."""


@dataclass(frozen=True)
class Track:
    """A thread of the host or a stream of a device.

    Args:
        pid: Process id on the host, device index for a stream, as written in the recording.
        tid: Thread id on the host, stream id on a device, as written.
        name: The name given by the recording's metadata, or empty.
    """

    pid: str
    tid: str
    name: str = ""


class Strings:
    """The distinct texts of a recording, kept as raw JSON bytes and decoded when asked for.

    Args:
        blob: All texts one after another: the inside of a JSON string literal, or a raw nested JSON value.
        offsets: Where each begins, and the end of the last, shape (texts + 1,).
    """

    def __init__(self, blob: bytes, offsets: IntArray) -> None:
        self.blob = blob
        self.offsets = offsets
        self._texts: dict[int, str] = {}
        self._values: dict[int, object] = {}

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Strings":
        """Return a table of plain Python strings."""
        raw = [json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass") for text in texts]
        return cls.of_raw(raw)

    @classmethod
    def of_raw(cls, raw: Sequence[bytes]) -> "Strings":
        """Return a table of texts as they stand in a file."""
        return cls(b"".join(raw), np.cumsum([0, *map(len, raw)]).astype(np.int64))

    def and_more(self, raw: Sequence[bytes]) -> "Strings":
        """Return a table with further texts behind its own; what was decoded need not be decoded again."""
        ends = self.offsets[-1] + np.cumsum([len(text) for text in raw])
        more = Strings(bytes(self.blob) + b"".join(raw), np.concatenate([self.offsets, ends]))
        more._texts = self._texts
        return more

    def __len__(self) -> int:
        """Return the number of distinct texts."""
        return len(self.offsets) - 1

    def raw(self, index: int) -> bytes:
        """Return the bytes as they stand in the file."""
        return self.blob[self.offsets[index] : self.offsets[index + 1]]

    def text(self, index: int) -> str:
        """Return a text with its escapes undone; what is no UTF-8 and no whole character becomes U+FFFD."""
        known = self._texts.get(index)
        if known is None:
            known = self.raw(index).decode("utf-8", "replace")
            if "\\" in known:
                known = SURROGATE.sub("\ufffd", _unescape(known))
            self._texts[index] = known
        return known

    def value(self, index: int) -> object:
        """Return a nested JSON value (a list of shapes, say); None where it cannot be decoded."""
        if index not in self._values:
            try:
                raw = self.raw(index)
                value = _decode(raw.decode("utf-8", "replace"))
                if b"\\" in raw and b"\\ud" in raw.lower():
                    value = json.loads(SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
                self._values[index] = value
            except (ValueError, RecursionError):
                self._values[index] = None
        return self._values[index]


@dataclass(frozen=True, eq=False)
class ArgColumn:
    """One key of the events' ``args``: sparse, with one part per type of value that occurs.

    Each part is (rows, values): rows in ascending order and their values, ints as int64; texts and nested values are
    indices into the table's `Strings`. Rows and indices may be int32, to keep large recordings small.
    """

    ints: tuple[IntArray, IntArray] | None = None
    floats: tuple[IntArray, npt.NDArray[np.float64]] | None = None
    texts: tuple[IntArray, IntArray] | None = None
    nested: tuple[IntArray, IntArray] | None = None


@dataclass(frozen=True, eq=False)
class EventTable:
    """The events of one rank, one row each, in the order of the file.

    Args:
        ts_ns: Start, integer nanoseconds since the epoch (or since an unknown origin in old formats), int64 (events,).
        dur_ns: Duration, int64 (events,); 0 for instants.
        kind: `Kind` codes, uint8 (events,).
        name: Index of the name in `strings`, int32 (events,).
        track: Index in `tracks`, int32 (events,).
        tracks: The threads and streams.
        strings: The distinct texts.
        args: Sparse columns by key, as spelt in newest Kineto (``External id``, ``Input Dims`` …);
            ``@id`` and ``@bp`` are the flow fields.
    """

    ts_ns: IntArray
    dur_ns: IntArray
    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    track: npt.NDArray[np.int32]
    tracks: tuple[Track, ...]
    strings: Strings
    args: Mapping[str, ArgColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.ts_ns)

    @cached_property
    def end_ns(self) -> IntArray:
        """Return the end of each event, int64 (events,)."""
        return self.ts_ns + self.dur_ns

    def names(self, rows: npt.ArrayLike) -> list[str]:
        """Return the names of some rows."""
        return [self.strings.text(int(index)) for index in self.name[np.asarray(rows, np.int64)]]

    def of_kind(self, *kinds: Kind) -> BoolArray:
        """Return for each row whether it is of one of the kinds."""
        return among(self.kind, kinds)

    def name_is(self, test: NameTest, *kinds: Kind) -> BoolArray:
        """Return for each row whether its name fits, and where kinds are given, whether it is of one of them.

        Args:
            test: A text that the name equals, a set it is in, a pattern found in it, or a function that is true of it.
            *kinds: Kinds of events; none means any.
        """
        return self.which(self.name, self.kind, test, *kinds)

    def which(
        self, names: npt.NDArray[np.integer], kind: npt.NDArray[np.uint8], test: NameTest, *kinds: Kind
    ) -> BoolArray:
        """Return which of some events fit, given their columns `name` and `kind`; otherwise as `name_is`."""
        fits = self.fitting(test, *kinds)
        if not fits.any():
            return np.zeros(len(names), bool)
        found: BoolArray = fits.take(names)
        if kinds and self._used_by_kind[[one not in kinds for one in Kind]][:, fits].any():
            found &= among(kind, kinds)
        return found

    def fitting(self, test: NameTest, *kinds: Kind) -> BoolArray:
        """Return for each text whether it is a name (of an event of some kinds) that fits, bool (strings,).

        The test runs once per distinct name, not once per event, and only the first time it is asked.
        """
        fits = self._known_fits.get((test, kinds))
        if fits is None:
            (indices, names), fit = self.names_of(*kinds), _check(test)
            fits = self._known_fits[test, kinds] = np.zeros(len(self.strings), bool)
            fits[indices] = [bool(fit(name)) for name in names]
        return fits

    def coded(self, code: Callable[[str], int], *kinds: Kind) -> npt.NDArray[np.int8]:
        """Return a number for each text that is a name of an event of some kinds, -1 for others, int8 (strings,)."""
        codes = np.full(len(self.strings), -1, np.int8)
        indices, names = self.names_of(*kinds)
        codes[indices] = [code(name) for name in names]
        return codes

    def names_of(self, *kinds: Kind) -> tuple[IntArray, list[str]]:
        """Return (indices in `strings`, texts) of the names of events of some kinds, of any where none is given."""
        known = self._known_names.get(kinds)
        if known is None:
            indices = np.flatnonzero(self._used_by_kind[list(kinds or Kind)].any(axis=0))
            known = self._known_names[kinds] = indices, list(map(self.strings.text, indices.tolist()))
        return known

    @cached_property
    def _known_names(self) -> dict[tuple[Kind, ...], tuple[IntArray, list[str]]]:
        return {}

    @cached_property
    def _known_fits(self) -> dict[tuple[NameTest, tuple[Kind, ...]], BoolArray]:
        return {}

    @cached_property
    def _used_by_kind(self) -> BoolArray:
        """Return which texts are names of events of each kind, bool (kinds, strings)."""
        used = np.zeros(len(Kind) * len(self.strings), bool)
        used[self.kind.astype(np.int32) * len(self.strings) + self.name] = True
        return used.reshape(len(Kind), -1)

    def distinct_names(self, rows: npt.ArrayLike) -> tuple[IntArray, IntArray]:
        """Return (the distinct names of some rows as indices in `strings`, the place of each row's among them)."""
        return distinct(self.name[np.asarray(rows, np.int64)], len(self.strings))

    def ints(self, key: str, missing: int = -1) -> IntArray:
        """Return an integer argument of each row, `missing` where it has none, int64 (events,)."""
        dense = np.full(len(self), missing, np.int64)
        column = self.args.get(key)
        if column and column.ints:
            dense[column.ints[0]] = column.ints[1]
        if column and column.floats:
            whole = np.abs(column.floats[1]) < 2.0**63  # neither NaN nor beyond what an integer holds
            dense[column.floats[0][whole]] = column.floats[1][whole].astype(np.int64)
        return dense

    def floats(self, key: str) -> npt.NDArray[np.float64]:
        """Return a numeric argument of each row, NaN where it has none, float64 (events,)."""
        dense = np.full(len(self), np.nan)
        column = self.args.get(key)
        for part in (column.ints, column.floats) if column else ():
            if part:
                dense[part[0]] = part[1]
        return dense

    def texts(self, key: str) -> IntArray:
        """Return the `strings` index of a textual or nested argument of each row, -1 where it has none."""
        dense = np.full(len(self), -1, np.int64)
        column = self.args.get(key)
        for part in (column.texts, column.nested) if column else ():
            if part:
                dense[part[0]] = part[1]
        return dense

    def arg(self, row: int, key: str) -> object:
        """Return one argument of one row as a Python value, or None: for details, never in a loop over events."""
        column = self.args.get(key)
        if column is None:
            return None
        decoders: tuple[tuple[tuple[IntArray, npt.NDArray[np.generic]] | None, Callable[[int], object]], ...] = (
            (column.ints, int),
            (column.floats, float),
            (column.texts, self.strings.text),
            (column.nested, self.strings.value),
        )
        for part, decode in decoders:
            if part is not None:
                place = int(np.searchsorted(part[0], row))
                if place < len(part[0]) and part[0][place] == row:
                    return decode(part[1][place].item())
        return None


def together(*columns: npt.NDArray[np.integer]) -> tuple[IntArray, IntArray]:
    """Return (a place of each distinct combination of values from -1 on, the number of that of each place).

    Combinations are numbered in the order of their values.
    """
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes, size = column.astype(np.int64) + 1, int(column.max(initial=-1)) + 2
        if size > _LARGEST_TABLE or (int(key.max(initial=0)) + 1) * size > _LARGEST_TABLE:
            codes = _dense(codes, size)
            size = int(codes.max(initial=0)) + 1
        # Numbers are made dense again after each column, so that the product never overflows.
        key = _dense(key * size + codes, (int(key.max(initial=0)) + 1) * size)
    first = np.zeros(int(key.max(initial=-1)) + 1, np.int64)
    first[key[::-1]] = np.arange(len(key))[::-1]
    return first, key


_LARGEST_TABLE = 1 << 22
"""Codes up to this are counted in a table, larger ones sorted."""


def _dense(codes: IntArray, size: int) -> IntArray:
    """Return numbers from 0 without gaps in the order of some codes, equal ones for equal ones."""
    return distinct(codes, size)[1] if size <= _LARGEST_TABLE else np.unique(codes, return_inverse=True)[1]


def starting(words: str, unless_after: str, then: str = "") -> str:
    """Return a pattern for words that begin, as one before which a character does not stand.

    Each word comes before the look back at what precedes it: `re` finds first letters many times as fast as groups.

    Args:
        words: Words, with spaces between them.
        unless_after: Characters that must not stand before them, the inside of ``[…]``; ``^/`` lets only a slash stand.
        then: What must follow.
    """
    return "|".join(f"{word}(?<![{unless_after}]{word}){then}" for word in words.split())


def distinct(codes: npt.NDArray[np.integer], size: int) -> tuple[IntArray, IntArray]:
    """Return (the distinct codes in order, the place of each code among them), as `numpy.unique` without sorting.

    Args:
        codes: Numbers from 0.
        size: One more than the largest there can be.
    """
    used = np.zeros(size, bool)
    used[codes] = True
    found = np.flatnonzero(used)
    place = np.zeros(size, np.int32)
    place[found] = np.arange(len(found))
    return found, place[codes].astype(np.int64)


def among(kind: npt.NDArray[np.uint8], kinds: Iterable[Kind]) -> BoolArray:
    """Return for each code of a kind whether it is one of some kinds."""
    found = np.zeros(len(kind), bool)
    for one in kinds:  # a few comparisons of bytes are quicker than one look-up in a table
        found |= kind == one
    return found


def _check(test: NameTest) -> Callable[[str], object]:
    """Return what is true of the names that fit."""
    if isinstance(test, str):
        return test.__eq__
    if isinstance(test, re.Pattern):
        return test.search
    return test.__contains__ if isinstance(test, frozenset) else test


_decode = json.JSONDecoder(strict=False).decode
SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character, which no output can hold."""
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|["\\/bfnrt])')


def _unescape(text: str) -> str:
    """Return a JSON string's inside with its escapes undone, leaving wrong ones as they stand."""
    try:
        return str(_decode(f'"{text}"'))
    except ValueError:
        return _ESCAPE.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)
