"""Any trace document, written any way and read in any pieces, gives the same columns from both scanners."""

import json
from decimal import Decimal
from pathlib import Path
from typing import cast
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.test_readers_scanners import expected_rows, rows_of, scanners
from uncork.errors import UncorkError
from uncork.readers import document
from uncork.readers.columns import Scanned
from uncork.readers.document import Scanner, scan
from uncork.readers.parallel import Shared

each_scanner = pytest.mark.parametrize("scanner", scanners())

BLANKS = st.text(" \n\t\r", max_size=3)
TEXTS = st.text(max_size=12)
KEYS = st.sampled_from(["External id", "Input Dims", "x", "ph", "ts", '"', "\\", "{", "ключ"]) | st.text(max_size=6)
NUMBERS = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.decimals(-(10**12), 10**12, places=3).map(str),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(repr),
)
LEAVES = st.one_of(NUMBERS.map(lambda number: ("number", number)), TEXTS, st.none(), st.booleans())
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
EVENTS = st.fixed_dictionaries(
    {"ph": st.sampled_from("XisfMBEC")},
    optional={
        "cat": TEXTS,
        "name": TEXTS,
        "pid": st.integers(-5, 10**12) | TEXTS,
        "tid": st.integers(-5, 10**12) | TEXTS,
        "ts": st.decimals(-(10**12), 10**15, places=3).map(lambda number: ("number", str(number))),
        "dur": st.decimals(0, 10**9, places=5).map(lambda number: ("number", str(number))),
        "id": st.integers(0, 2**62) | TEXTS,
        "bp": st.just("e"),
        "s": TEXTS,
        "args": st.dictionaries(KEYS.filter(lambda key: not key.startswith("@")), VALUES, max_size=5),
        "anything": VALUES,
    },
)


@st.composite
def written(draw: st.DrawFn, value: object) -> str:
    """Return a value as JSON text in some layout."""

    def blank() -> str:
        return cast("str", draw(BLANKS))

    def text(value: object) -> str:
        if isinstance(value, tuple):
            return str(value[1])
        if isinstance(value, dict):
            keys = draw(st.permutations(sorted(value)))
            members = (f"{blank()}{text(key)}{blank()}:{blank()}{text(value[key])}{blank()}" for key in keys)
            return "{" + (",".join(members) or blank()) + "}"
        if isinstance(value, list):
            return "[" + (",".join(f"{blank()}{text(item)}{blank()}" for item in value) or blank()) + "]"
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    return text(value)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Return a trace document: a bare list or an object with the events somewhere in it."""
    events = draw(st.lists(EVENTS, max_size=6))
    if draw(st.booleans()):
        return cast("str", draw(written(events)))
    header = draw(st.dictionaries(st.sampled_from(["schemaVersion", "traceName", "deviceProperties", "z"]), VALUES))
    return cast("str", draw(written(header | {"traceEvents": events})))


class Pieces:
    """A source that hands a text out in pieces."""

    damage: frozenset[str] = frozenset()
    path = Path("pieces")

    def __init__(self, text: bytes, size: int) -> None:
        self.pieces = [text[place : place + size] for place in range(0, len(text), size)]

    def read(self, wanted: int) -> bytes:
        """Return the next piece, whatever is wanted."""
        del wanted
        return self.pieces.pop(0) if self.pieces else b""


def scanned(text: bytes, scanner: type[Scanner], size: int = 1 << 30, *, in_two: bool = False) -> Scanned:
    """Return the columns of a text read in pieces of some size, by two threads if wanted and compiled."""
    with patch.object(document, "_CHUNK_BYTES", size), patch("os.cpu_count", lambda: 2):
        source, own = Pieces(text, size), scanner()
        return scan(source, own, Shared(source, own).read_on if in_two and hasattr(own, "absorb") else None)


@each_scanner
@settings(deadline=None, max_examples=150)
@given(trace=documents(), size=st.integers(1, 40))
@example(trace='[{"ph":"X","args":{"a":{"ph":"X"},"b":[{"ph":"i"},{"ph":"i"}]}}]', size=1)
def test_any_layout_in_any_pieces(scanner: type[Scanner], trace: str, size: int) -> None:
    """The columns hold what the standard library reads in exact decimals."""
    whole = json.loads(trace, parse_float=Decimal)
    events = whole if isinstance(whole, list) else whole["traceEvents"]
    text = trace.encode("utf-8", "surrogatepass")
    assert rows_of(scanned(text, scanner)) == expected_rows(events)
    assert rows_of(scanned(text, scanner, size)) == expected_rows(events)
    assert rows_of(scanned(text, scanner, size, in_two=True)) == expected_rows(events)


SMALL = (
    b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "a\\"b", "ts": 1.5, "dur": 2, "args": {"x": [{"ph":"X",'
    b'"name":"no","ts":1}, {"ph":"X","name":"no","ts":1}], "y": "q"}},\n{"ph": "s", "id": 7, "ts": 12, "cat": "ac2g"},'
    b' {"name": "\xd0\xba", "ph": "i", "ts": 100}], "traceName": "x", "baseTimeNanoseconds": 5}'
)


@each_scanner
def test_cut_at_any_byte(scanner: type[Scanner]) -> None:
    """A file cut anywhere gives the whole events before the cut, never one that was not there, and says it is cut."""
    complete = rows_of(scanned(SMALL, scanner))
    assert len(complete) == 3
    for place in range(1, len(SMALL)):
        for size in (1 << 30, 7, 150):
            try:
                found = scanned(SMALL[:place], scanner, size, in_two=size == 150)
            except UncorkError:
                continue
            rows = rows_of(found)
            assert rows == complete[: len(rows)]
            assert found.repairs["cut_file"] == 1


@each_scanner
@settings(deadline=None, max_examples=300)
@given(
    in_two=st.booleans(),
    place=st.integers(0, len(SMALL)),
    junk=st.binary(max_size=4),
    drop=st.integers(0, 4),
    size=st.integers(1, 500),
)
def test_damage_anywhere_ends_cleanly(
    *, scanner: type[Scanner], place: int, junk: bytes, drop: int, size: int, in_two: bool
) -> None:
    """Bytes overwritten anywhere are repaired, counted or refused; both ways of reading end."""
    text = SMALL[:place] + junk + SMALL[place + drop :]
    try:
        found = scanned(text, scanner, size, in_two=in_two)
    except UncorkError:
        return
    assert len(found) <= 6
    rows_of(found)
