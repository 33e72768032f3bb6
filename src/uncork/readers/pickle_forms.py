"""Form: the instructions of a dict of small values, which a snapshot repeats for every action with the same keys."""

import re
import struct

from uncork.records import dataclass

_SHORT = rb"K.|M..|J...."
_NUMBER = _SHORT + rb"|\x8a(?:" + b"|".join(b"\\x%02x.{%d}" % (size, size) for size in range(1, 9)) + rb")"
_LIST = rb"\]\x94?(?:\((?:h.|j....)+e|(?:h.|j....)a)?"
_TUPLE = b"(?:" + b"|".join(rb"(?:%s){%d}[\x%02x]" % (_SHORT, size, 0x84 + size) for size in (1, 2, 3)) + rb")\x94?"
_VALUE = rb"(?:h.|j....|" + _NUMBER + b"|" + _LIST + b"|" + _TUPLE + rb"|N|\x88|\x89|G.{8})"
_FLAT = re.compile(rb"\}(\x94?)\(((?:(?:h.|j....)" + _VALUE + rb")+)u", re.DOTALL)
_ITEM = re.compile(rb"(h.|j....)(" + _VALUE + rb")(?=[hj]|$)", re.DOTALL)
_MOST_FORMS = 64


@dataclass(frozen=True)
class Form:
    """Dicts with the same keys.

    Args:
        pattern: All instructions of one, with a group for each value.
        keys: Where its keys are remembered.
        memoized: Whether it is remembered itself.
    """

    pattern: re.Pattern[bytes]
    keys: tuple[int, ...]
    memoized: bool


NO_FORM = Form(re.compile(rb"(?!)"), (), memoized=False)


def form_at(buffer: bytes, at: int, known: dict[bytes, Form]) -> Form:
    """Return the form of the dict that begins at a place; `NO_FORM` unless all of it lies there and is flat.

    Args:
        buffer: The instructions.
        at: Where EMPTY_DICT stands.
        known: Forms by their keys; a new one is added while there are few.
    """
    found = _FLAT.match(buffer, at)
    if found is None:
        return NO_FORM
    keys = [item[1] for item in _ITEM.finditer(found[2])]
    name = found[1] + b"".join(keys)
    if name not in known and len(known) < _MOST_FORMS:
        text = b"".join(re.escape(key) + b"(" + _VALUE + b")" for key in keys)
        pattern = re.compile(rb"\}" + found[1] + rb"\(" + text + b"u", re.DOTALL)
        places = tuple(int.from_bytes(key[1:], "little") for key in keys)
        known[name] = Form(pattern, places, memoized=bool(found[1]))
    return known.get(name, NO_FORM)


def small_value(raw: bytes) -> object:
    """Return a whole number, float, truth or tuple from its instructions; none where they say so."""
    code = raw[0]
    if code == 0x8A:  # LONG1
        return int.from_bytes(raw[2:], "little", signed=True)
    if code == 0x47:  # BINFLOAT
        return struct.unpack(">d", raw[1:])[0]
    if code in _SIZES:
        numbers, at = [], 0
        while at < len(raw) and (size := _SIZES.get(raw[at])):
            numbers.append(int.from_bytes(raw[at + 1 : at + size], "little", signed=size == _SIZES[0x4A]))
            at += size
        return tuple(numbers) if at < len(raw) else numbers[0]
    return {0x88: True, 0x89: False}.get(code)


_SIZES = {0x4B: 2, 0x4D: 3, 0x4A: 5}
"""BININT1, BININT2, BININT with their operands."""
