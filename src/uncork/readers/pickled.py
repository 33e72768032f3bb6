"""Plain values from a pickle, without unpickling: containers, text, bytes and numbers; anything else is refused.

A pickle is a program. This reads the few instructions that data needs and none that could call or import anything,
piece by piece, and hands every finished dict to a collector, which may empty it: so memory stays near the size of
the file, whatever the file says.
"""

import re
import struct
from collections.abc import Callable
from typing import Protocol

from uncork.errors import UnreadableError

Collector = Callable[[dict[object, object]], None]
"""Called with each dict that was filled; may take what it needs and clear it."""

_CHUNK_BYTES = 1 << 20
_MOST_OPERAND_BYTES = 16
"""Instructions with operands of fixed size fit into this; longer operands say their length."""
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


def load(source: Bytes, collect: Collector) -> object:
    """Return the value of a pickle of plain values.

    Args:
        source: The bytes.
        collect: Called with each dict that was filled.

    Raises:
        PickleError: The bytes are cut, are no pickle, or hold anything but plain values.
    """
    machine = _Machine(source, collect)
    try:
        return machine.run()
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, struct.error, OverflowError) as error:
        raise PickleError(machine.why_broken()) from error


class _Machine:
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
        self.memo: dict[int, object] = {}
        self.objects = 0
        self.item_by_item = False
        self.runs: dict[bytes, list[object]] = {}

    @property
    def place(self) -> int:
        """Return the position in the pickle."""
        return self.before + self.at

    def run(self) -> object:  # noqa: C901, PLR0912 - one branch for each of the commonest instructions
        """Return the value that the pickle leaves."""
        stack, memo, marks = self.stack, self.memo, self.marks
        instructions = _INSTRUCTIONS
        buffer, at, limit = self.buffer, self.at, -1
        while True:
            if at > limit:
                self.at = at
                self.refill()
                buffer, at = self.buffer, self.at
                limit = len(buffer) if self.ended else len(buffer) - _MOST_OPERAND_BYTES
                if at >= len(buffer):
                    raise PickleError(f"cut off after {self.place} bytes.")
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
            elif code == 0x5D and (run := _RUN.match(buffer, at - 1)):  # EMPTY_LIST … APPENDS
                stack.append(self.list_of(run[0]))
                at = run.end()
            elif code == 0x2E:  # STOP
                return stack.pop()
            else:
                self.at = at
                instruction = instructions.get(code)
                if instruction is None:
                    raise PickleError(_refusal(code, self.place - 1))
                instruction(self)
                buffer, at = self.buffer, self.at

    def list_of(self, run: bytes) -> list[object]:
        """Return the list that a run of instructions makes; equal runs make the same one."""
        found = self.runs.get(run)
        if found is None:
            memo, at = self.memo, run.index(b"(") + 1
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
        if run[1] == 0x94:  # MEMOIZE
            self.memo[len(self.memo)] = found
        self.objects += 1
        return found

    def why_broken(self) -> str:
        """Return what can be said of an instruction that could not be followed."""
        size = self.before + len(self.buffer)
        if self.ended and size - self.place <= _MOST_OPERAND_BYTES:
            return f"cut off after {size} bytes."
        return f"damaged near byte {self.place}."

    def refill(self) -> None:
        """Read on, and stop a file that makes far more objects than its size can hold."""
        if not self.ended:
            chunk = self.source.read(_CHUNK_BYTES)
            self.before += self.at
            self.buffer, self.at = self.buffer[self.at :] + chunk, 0
            self.ended = not chunk
        self.check_growth()

    def check_growth(self) -> None:
        """Raise if there are more objects than bytes that could describe them."""
        most = _FREE_OBJECTS + (self.before + len(self.buffer)) // _BYTES_PER_OBJECT
        if self.objects > most or len(self.memo) > most or len(self.stack) > most or len(self.marks) > most:
            raise PickleError("it describes far more objects than a snapshot of its size can hold.")

    def take(self, count: int) -> bytes:
        """Return the next bytes, reading on as far as needed."""
        if count < 0:
            raise ValueError
        missing = count - (len(self.buffer) - self.at)
        parts = []
        while missing > 0:
            parts.append(self.source.read(_CHUNK_BYTES))  # a length may be a lie: never ask for all of it at once
            if not parts[-1]:
                raise PickleError(f"cut off after {self.before + len(self.buffer)} bytes.")
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
                raise PickleError(f"cut off or damaged near byte {self.place}.")
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
        target.update(zip(pairs[::2], pairs[1::2], strict=True))
        self.collect(target)

    def reduce(self) -> None:
        """Resolve a wrapper of torch's C++ writer to the value in it."""
        arguments, function = self.stack.pop(), self.stack.pop()
        if not isinstance(function, _Torch) or not isinstance(arguments, tuple) or not arguments:
            raise PickleError("it would run code, which uncork never does.")
        self.stack.append(arguments[0])

    def name(self, module: str, name: str) -> None:
        """Push the stand-in of a function of torch's C++ writer; refuse any other."""
        if module != _JIT_MODULE or name not in (*_JIT_LISTS, "restore_type_tag"):
            raise PickleError(f"it would load {module[:60]}.{name[:60]}, which uncork never does.")
        self.made(_Torch(name))


def _refusal(code: int, place: int) -> str:
    if code in _CODE_RUNNING:
        return "it would run code, which uncork never does."
    return f"no pickle: unknown instruction {code:#04x} at byte {place}."


_CODE_RUNNING = frozenset(b"ioPQb\x81\x92\x82\x83\x84\x97\x98")
"""INST, OBJ, BUILD, NEWOBJ, persistent ids, extensions, out-of-band buffers: never data."""


def _pop(machine: _Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


def _memoize(machine: _Machine, place: int | None = None) -> None:
    machine.memo[len(machine.memo) if place is None else place] = machine.stack[-1]


def _tuple_of(machine: _Machine, count: int) -> None:
    if len(machine.stack) < count:
        raise IndexError
    items = tuple(machine.stack[-count:])
    del machine.stack[-count:]
    machine.made(items)


def _set_one(machine: _Machine) -> None:
    """Set one item; protocol 0 sets all so, and such a dict is finished when it is put into a list."""
    value, key = machine.stack.pop(), machine.stack.pop()
    target = machine.stack[-1]
    if not isinstance(target, dict):
        raise TypeError
    target[key] = value
    machine.item_by_item = True


def _text(machine: _Machine, length_bytes: int) -> None:
    machine.made(machine.take(machine.number(length_bytes)).decode("utf-8", "replace"))


def _raw(machine: _Machine, length_bytes: int) -> None:
    machine.made(machine.take(machine.number(length_bytes)))


def _int_line(machine: _Machine) -> None:
    word = machine.line()
    machine.stack.append(word == b"01" if word in (b"00", b"01") else int(word))


def _dict_of(machine: _Machine) -> None:
    pairs = machine.since_mark()
    machine.made({})
    machine.fill(pairs)


def _stack_global(machine: _Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.name(str(module), str(name))


_INSTRUCTIONS: dict[int, Callable[[_Machine], None]] = {
    ord("\x80"): lambda machine: _ignore(machine.take(1)),  # PROTO
    ord("\x95"): lambda machine: _ignore(machine.take(8)),  # FRAME
    ord("0"): _pop,
    ord("1"): lambda machine: _ignore(machine.since_mark()),  # POP_MARK
    ord("2"): lambda machine: machine.stack.append(machine.stack[-1]),  # DUP
    ord("N"): lambda machine: machine.stack.append(None),
    ord("\x88"): lambda machine: machine.stack.append(True),
    ord("\x89"): lambda machine: machine.stack.append(False),
    ord("I"): _int_line,
    ord("L"): lambda machine: machine.stack.append(int(machine.line().rstrip(b"L"))),
    ord("M"): lambda machine: machine.stack.append(machine.number(2)),
    ord("\x8a"): lambda machine: machine.stack.append(machine.number(machine.number(1), signed=True)),
    ord("\x8b"): lambda machine: machine.stack.append(machine.number(machine.number(4), signed=True)),
    ord("F"): lambda machine: machine.stack.append(float(machine.line())),
    ord("G"): lambda machine: machine.stack.append(struct.unpack(">d", machine.take(8))[0]),
    ord("S"): lambda machine: machine.made(machine.line().strip(b"'\"").decode("utf-8", "replace")),
    ord("V"): lambda machine: machine.made(machine.line().decode("raw-unicode-escape", "replace")),
    ord("T"): lambda machine: _text(machine, 4),
    ord("U"): lambda machine: _text(machine, 1),
    ord("X"): lambda machine: _text(machine, 4),
    ord("\x8c"): lambda machine: _text(machine, 1),
    ord("\x8d"): lambda machine: _text(machine, 8),
    ord("B"): lambda machine: _raw(machine, 4),
    ord("C"): lambda machine: _raw(machine, 1),
    ord("\x8e"): lambda machine: _raw(machine, 8),
    ord("\x96"): lambda machine: _raw(machine, 8),
    ord("]"): lambda machine: machine.made([]),
    ord("l"): lambda machine: machine.made(machine.since_mark()),
    ord("a"): lambda machine: machine.extend([machine.stack.pop()]),
    ord("e"): lambda machine: machine.extend(machine.since_mark()),
    ord("}"): lambda machine: machine.made({}),
    ord("d"): _dict_of,
    ord("s"): _set_one,
    ord("u"): lambda machine: machine.fill(machine.since_mark()),
    ord(")"): lambda machine: machine.stack.append(()),
    ord("t"): lambda machine: machine.made(tuple(machine.since_mark())),
    ord("\x85"): lambda machine: _tuple_of(machine, 1),
    ord("\x86"): lambda machine: _tuple_of(machine, 2),
    ord("\x87"): lambda machine: _tuple_of(machine, 3),
    ord("p"): lambda machine: _memoize(machine, int(machine.line())),
    ord("q"): lambda machine: _memoize(machine, machine.number(1)),
    ord("r"): lambda machine: _memoize(machine, machine.number(4)),
    ord("\x94"): _memoize,
    ord("g"): lambda machine: machine.stack.append(machine.memo[int(machine.line())]),
    ord("c"): lambda machine: machine.name(machine.line().decode("latin-1"), machine.line().decode("latin-1")),
    ord("\x93"): _stack_global,
    ord("R"): _Machine.reduce,
}
"""Instruction → what it does; see the standard library's ``pickletools`` for each."""


def _ignore(_: object) -> None:
    """Drop an operand that says nothing about the data."""
