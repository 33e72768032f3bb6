"""Plain values from a pickle, without unpickling: containers, text, bytes and numbers; anything else is refused.

A pickle is a program. This reads the few instructions that data needs and none that could call or import anything,
piece by piece, and hands every finished dict to a collector, which may empty it: so memory stays near the size of
the file, whatever the file says.
"""

import struct

from uncork.readers.pickle_machine import Bytes, Collector, Instruction, Machine, PickleError, is_key

__all__ = ["PickleError", "load"]


def load(source: Bytes, collect: Collector) -> object:
    """Return the value of a pickle of plain values.

    Args:
        source: The bytes.
        collect: Called with each dict that was filled.

    Raises:
        PickleError: The bytes are cut, are no pickle, or hold anything but plain values.
    """
    machine = Machine(source, collect)
    try:
        return machine.run(_INSTRUCTIONS)
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, struct.error, OverflowError) as error:
        raise machine.why_broken() from error


def _pop(machine: Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


def _memoize(machine: Machine) -> None:
    machine.memo.append(machine.stack[-1])


def _memoize_at(machine: Machine, place: int) -> None:
    """Remember what is on top; places rise by one, but for those that ``pickletools.optimize`` left out."""
    memo = machine.memo
    if place < len(memo):
        machine.forget_repeated()
    machine.check_growth(place)
    memo.extend([None] * (place + 1 - len(memo)))
    memo[place] = machine.stack[-1]


def _tuple_of(machine: Machine, count: int) -> None:
    if len(machine.stack) < count:
        raise IndexError
    items = tuple(machine.stack[-count:])
    del machine.stack[-count:]
    machine.made(items)


def _set_one(machine: Machine) -> None:
    """Set one item; protocol 0 sets all so, and such a dict is finished when it is put into a list."""
    value, key = machine.stack.pop(), machine.stack.pop()
    target = machine.stack[-1]
    if not isinstance(target, dict) or not is_key(key):
        raise TypeError
    target[key] = value
    machine.item_by_item = True


def _text(machine: Machine, length_bytes: int) -> None:
    machine.made(machine.take(machine.number(length_bytes)).decode("utf-8", "replace"))


def _raw(machine: Machine, length_bytes: int) -> None:
    machine.made(machine.take(machine.number(length_bytes)))


def _int_line(machine: Machine) -> None:
    word = machine.line()
    machine.stack.append(word == b"01" if word in (b"00", b"01") else int(word))


def _dict_of(machine: Machine) -> None:
    pairs = machine.since_mark()
    machine.made({})
    machine.fill(pairs)


def _stack_global(machine: Machine) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.name(str(module), str(name))


_INSTRUCTIONS: dict[int, Instruction] = {
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
    ord("p"): lambda machine: _memoize_at(machine, int(machine.line())),
    ord("q"): lambda machine: _memoize_at(machine, machine.number(1)),
    ord("r"): lambda machine: _memoize_at(machine, machine.number(4)),
    ord("\x94"): _memoize,
    ord("g"): lambda machine: machine.stack.append(machine.memo[int(machine.line())]),
    ord("c"): lambda machine: machine.name(machine.line().decode("latin-1"), machine.line().decode("latin-1")),
    ord("\x93"): _stack_global,
    ord("R"): Machine.reduce,
}
"""Instruction → what it does; see the standard library's ``pickletools`` for each."""


def _ignore(_: object) -> None:
    """Drop an operand that says nothing about the data."""
