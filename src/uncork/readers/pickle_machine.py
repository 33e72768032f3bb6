"""Machine: the stack and the memory of a pickle that is read, and the instructions that make up most of a snapshot."""

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from uncork.errors import UnreadableError
from uncork.readers.pickle_forms import NO_FORM, Form, form_at, small_value

Collector = Callable[[dict[object, object]], object]
"""Called with each dict that was filled; may take what it needs and clear it. Returns what may stand in its place."""
Instruction = Callable[["Machine"], None]

_CHUNK_BYTES = 1 << 20
_MOST_OPERAND_BYTES = 16
"""Instructions with operands of fixed size fit into this; longer operands say their length."""
_OBJECTS_PER_DICT = 4
"""A dict that keeps something takes as much as so many lists; of a snapshot nearly all are emptied."""
_FREE_OBJECTS = 100_000
_BYTES_PER_OBJECT = 6
"""Torch's snapshots take 22 bytes and more per container or text they hold (events without stacks; with stacks 80);
files in which no frame is shared, 9."""
_JIT_MODULE = "torch.jit._pickle"
_JIT_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist", "build_list")
"""The C++ writer of snapshots wraps its lists in these (torch/csrc/jit/serialization/pickler.cpp)."""

_RUN = re.compile(rb"\]\x94?\((?:h.|j....)+e(?=[^(a])", re.DOTALL)
"""A list of values that were all seen before: so stacks are written, and equal ones are the same bytes."""
_MOST_RUNS = 50_000
"""So many lists, and small values, are kept for the next time the same bytes come."""


class Bytes(Protocol):
    """Something that gives bytes until it gives none."""

    def read(self, wanted_bytes: int, /) -> bytes:
        """Return the next bytes, empty at the end."""
        ...


class PickleError(UnreadableError):
    """The bytes are no pickle of plain values."""


class _Torch:
    """Stands for one of the functions that torch's own writer names; none of them is imported or called."""

    def __init__(self, name: str) -> None:
        self.name = name


class Machine:
    """The state of one reading.

    Args:
        source: The bytes.
        collect: Called with each dict that was filled.
    """

    def __init__(self, source: Bytes, collect: Collector) -> None:
        self.source = source
        self.collect = collect
        self.buffer = b""
        self.at = 0
        self.before = 0
        self.ended = False
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: list[object] = []
        self.objects = 0
        self.item_by_item = False
        self.runs: dict[bytes, list[object]] = {}
        self.known: dict[bytes, object] = {}
        self.form = NO_FORM
        self.forms: dict[bytes, Form] = {}

    @property
    def place(self) -> int:
        """Return the position in the pickle."""
        return self.before + self.at

    def run(self, instructions: Mapping[int, Instruction]) -> object:  # noqa: C901, PLR0912 - one branch for each of the commonest instructions
        """Return the value that the pickle leaves, given what the rarer instructions do."""
        stack, memo, marks = self.stack, self.memo, self.marks
        buffer, at, limit = self.buffer, self.at, -1
        while True:
            if at > limit:
                self.at = at
                self.refill()
                buffer, at = self.buffer, self.at
                limit = len(buffer) if self.ended else len(buffer) - _MOST_OPERAND_BYTES
                if at >= len(buffer):
                    raise PickleError("cut_off", at=self.place)
            code = buffer[at]
            at += 1
            # The instructions that make up most of a snapshot, without a call.
            if code == 0x68:  # BINGET
                stack.append(memo[buffer[at]])
                at += 1
            elif code == 0x6A:  # LONG_BINGET
                stack.append(memo[int.from_bytes(buffer[at : at + 4], "little")])
                at += 4
            elif code == 0x4B:  # BININT1
                stack.append(buffer[at])
                at += 1
            elif code == 0x8A and buffer[at] < _MOST_OPERAND_BYTES - 2:  # LONG1
                end = at + 1 + buffer[at]
                stack.append(int.from_bytes(buffer[at + 1 : end], "little", signed=True))
                at = end
            elif code == 0x4A:  # BININT
                stack.append(int.from_bytes(buffer[at : at + 4], "little", signed=True))
                at += 4
            elif code == 0x28:  # MARK
                marks.append(len(stack))
            elif code == 0x7D and (end := self.flat_dict(buffer, at - 1)):  # EMPTY_DICT … SETITEMS
                at = end
            elif code == 0x5D and (run := _RUN.match(buffer, at - 1)):  # EMPTY_LIST … APPENDS
                stack.append(self.list_of(run[0]))
                at = run.end()
            elif code == 0x2E:  # STOP
                return stack.pop()
            else:
                self.at = at
                instruction = instructions.get(code)
                if instruction is None:
                    raise _refusal(code, self.place - 1)
                instruction(self)
                at = self.at
                if buffer is not self.buffer:  # it read on: the border of the piece lies elsewhere now
                    buffer, limit = self.buffer, len(self.buffer) - _MOST_OPERAND_BYTES

    def flat_dict(self, buffer: bytes, at: int) -> int:
        """Push the flat dict that begins at a place; return where it ends, 0 where none does."""
        found = self.form.pattern.match(buffer, at)
        if found is None:
            self.form = form_at(buffer, at, self.forms)
            if not all(is_key(self.memo[place]) for place in self.form.keys):
                raise TypeError
            found = self.form.pattern.match(buffer, at)
            if found is None:
                return 0
        memo, memoized = self.memo, self.form.memoized
        place = len(memo)
        if memoized:
            memo.append(None)
        known = self.known
        values: list[object] = []
        for raw in found.groups():
            code = raw[0]
            if code == 0x8A:  # LONG1
                values.append(int.from_bytes(raw[2:], "little", signed=True))
            elif code == 0x5D:  # EMPTY_LIST … APPENDS
                values.append(self.list_of(raw))
            elif raw in known:
                values.append(known[raw])
            else:
                values.append(self.value_of(raw))
        item = dict(zip([memo[key] for key in self.form.keys], values, strict=True))
        kept = self.collect(item)
        if memoized:
            memo[place] = kept
        self.stack.append(kept)
        self.objects += _OBJECTS_PER_DICT if kept is item else 1
        return found.end()

    def value_of(self, raw: bytes) -> object:
        """Return the value that a few instructions make, and keep it for the next time they come."""
        code = raw[0]
        if code == 0x68:  # BINGET
            value = self.memo[raw[1]]
        elif code == 0x6A:  # LONG_BINGET
            value = self.memo[int.from_bytes(raw[1:], "little")]
        else:
            value = small_value(raw)
            if isinstance(value, tuple) and raw[-1] == 0x94:  # MEMOIZE
                self.memo.append(value)
                return value
        if len(self.known) < _MOST_RUNS:
            self.known[raw] = value
        return value

    def list_of(self, run: bytes) -> list[object]:
        """Return the list that a run of instructions makes; equal runs make the same one."""
        found = self.runs.get(run)
        if found is None:
            memo, at = self.memo, 2 if run[1:2] == b"\x94" else 1
            at += run[at : at + 1] == b"("
            found = []
            while at < len(run) - 1:
                if run[at] == 0x68:
                    found.append(memo[run[at + 1]])
                    at += 2
                else:
                    found.append(memo[int.from_bytes(run[at + 1 : at + 5], "little")])
                    at += 5
            if len(self.runs) < _MOST_RUNS:
                self.runs[run] = found
        if run[1:2] == b"\x94":  # MEMOIZE
            self.memo.append(found)
        self.objects += 1
        return found

    def forget_repeated(self) -> None:
        """Forget what equal instructions made: a place that they name is filled anew."""
        self.runs.clear()
        self.known.clear()
        self.forms.clear()
        self.form = NO_FORM

    def why_broken(self) -> PickleError:
        """Return what can be said of an instruction that could not be followed."""
        size = self.before + len(self.buffer)
        if self.ended and size - self.place <= _MOST_OPERAND_BYTES:
            return PickleError("cut_off", at=size)
        return PickleError("damaged_near", at=self.place)

    def refill(self) -> None:
        """Read on, and stop a file that makes far more objects than its size can hold."""
        if not self.ended:
            chunk = self.source.read(_CHUNK_BYTES)
            self.before += self.at
            self.buffer, self.at = self.buffer[self.at :] + chunk, 0
            self.ended = not chunk
        self.check_growth()

    def check_growth(self, remembered: int = 0) -> None:
        """Raise if there are more objects, or places to remember them, than bytes that could describe them."""
        most = _FREE_OBJECTS + (self.before + len(self.buffer)) // _BYTES_PER_OBJECT
        if max(self.objects, len(self.memo), remembered, len(self.stack), len(self.marks)) > most:
            raise PickleError("snapshot_bomb")

    def take(self, count: int) -> bytes:
        """Return the next bytes, reading on as far as needed."""
        if count < 0:
            raise ValueError
        missing = count - (len(self.buffer) - self.at)
        parts = []
        while missing > 0:
            parts.append(self.source.read(_CHUNK_BYTES))  # a length may be a lie: never ask for all of it at once
            if not parts[-1]:
                raise PickleError("cut_off", at=self.before + len(self.buffer))
            missing -= len(parts[-1])
        if parts:
            self.before += self.at
            self.buffer, self.at = b"".join([self.buffer[self.at :], *parts]), 0
        start = self.at
        self.at += count
        return self.buffer[start : self.at]

    def line(self) -> bytes:
        """Return the rest of the line (protocol 0)."""
        while (end := self.buffer.find(b"\n", self.at)) < 0:
            if self.ended or len(self.buffer) - self.at > _CHUNK_BYTES:
                raise PickleError("damaged_near", at=self.place)
            self.refill()
        start, self.at = self.at, end + 1
        return self.buffer[start:end]

    def number(self, size: int, *, signed: bool = False) -> int:
        """Return an operand of some bytes."""
        return int.from_bytes(self.take(size), "little", signed=signed)

    def made(self, value: object) -> None:
        """Push a new object."""
        self.objects += 1
        if not self.objects & 0xFFFF:
            self.check_growth()
        self.stack.append(value)

    def since_mark(self) -> list[object]:
        """Return and remove what was pushed since the last mark."""
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def extend(self, items: list[object]) -> None:
        """Append to the list on top of the stack."""
        target = self.stack[-1]
        if not isinstance(target, list):
            raise TypeError
        target.extend(items)
        if self.item_by_item:
            for item in items:
                if isinstance(item, dict):
                    self.collect(item)

    def fill(self, pairs: list[object]) -> None:
        """Set items of the dict on top of the stack, and hand it to the collector."""
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise TypeError
        keys = pairs[::2]
        if not all(map(is_key, keys)):
            raise TypeError
        target.update(zip(keys, pairs[1::2], strict=True))
        self.collect(target)
        self.objects += _OBJECTS_PER_DICT if target else 0

    def reduce(self) -> None:
        """Resolve a wrapper of torch's C++ writer to the value in it."""
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Torch) or not isinstance(arguments, tuple) or not arguments:
            raise PickleError("would_run_code")
        self.stack.append(arguments[0])

    def name(self, module: str, name: str) -> None:
        """Push the stand-in of a function of torch's C++ writer; refuse any other."""
        if module != _JIT_MODULE or name not in (*_JIT_LISTS, "restore_type_tag"):
            raise PickleError("would_load", name=f"{module[:60]}.{name[:60]}")
        self.made(_Torch(name))


def is_key(value: object) -> bool:
    """Return whether a key is a plain value: nested tuples may take forever to be hashed."""
    return not isinstance(value, tuple)


def _refusal(code: int, place: int) -> PickleError:
    if code in _CODE_RUNNING:
        return PickleError("would_run_code")
    return PickleError("unknown_instruction", code=f"{code:#04x}", at=place)


_CODE_RUNNING = frozenset(b"ioPQb\x81\x92\x82\x83\x84\x97\x98")
"""INST, OBJ, BUILD, NEWOBJ, persistent ids, extensions, out-of-band buffers: never data."""
