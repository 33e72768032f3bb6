"""Damaged gzip files give what they hold, and say what is wrong with them."""

import gzip
import io
import json
import random
from pathlib import Path

import pytest

from uncork import readers
from uncork.errors import UnreadableError
from uncork.readers.salvage import Salvaged
from uncork.readers.source import Source

DICE = random.Random(7)
EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": f"aten::op{DICE.random()}", "pid": 1, "tid": 1, "ts": i, "dur": 1}
    for i in range(3000)
]
TEXT = json.dumps({"traceEvents": EVENTS}).encode()
HALF = len(TEXT) // 2
ONE, TWO = gzip.compress(TEXT[:HALF]), gzip.compress(TEXT[HALF:])
WHOLE = gzip.compress(TEXT)
IN_HALF = TEXT[:HALF].count(b"},")
"""The events that end in the first half: a comma follows each."""


def with_wrong_checksum(packed: bytes) -> bytes:
    """Return a member whose checksum is another."""
    return packed[:-8] + bytes(byte ^ 255 for byte in packed[-8:-4]) + packed[-4:]


@pytest.mark.parametrize(
    ("packed", "events", "repairs"),
    [
        (WHOLE, 3000, {}),
        (WHOLE[:-3], 3000, {}),  # its trailer is cut, its text is whole
        (WHOLE + b"garbage " * 10, 3000, {"text_behind": 1}),
        (WHOLE + bytes(512), 3000, {}),  # tapes and some file systems pad with zeros
        (ONE + TWO, 3000, {}),
        (with_wrong_checksum(WHOLE), 3000, {"checksum": 1}),
        (with_wrong_checksum(ONE) + TWO, 3000, {"checksum": 1}),
        (WHOLE[:-4] + b"abcd", 3000, {"checksum": 1}),
        (ONE, IN_HALF, {"cut_file": 1}),
        (ONE + TWO[:12], IN_HALF, {"cut_file": 1}),
        (ONE + b"\x1f\x8b\x09" + TWO[3:], IN_HALF, {"cut_file": 1, "text_behind": 1}),
    ],
)
def test_what_is_whole_is_kept_and_damage_is_told(
    tmp_path: Path, packed: bytes, events: int, repairs: dict[str, int]
) -> None:
    """Each kind of damage costs the events that it hit and no others."""
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed)
    (recording,) = readers.read(path)
    assert recording.events is not None
    assert (len(recording.events), recording.repairs) == (events, repairs)


def test_a_file_cut_at_any_byte(tmp_path: Path) -> None:
    """The text of a file cut anywhere is the beginning of the whole text, or the file is refused."""
    text = TEXT[:3000]
    packed = gzip.compress(text)
    path = tmp_path / "trace.json.gz"
    longest = 0
    for stop in range(2, len(packed)):
        path.write_bytes(packed[:stop])
        try:
            with Source(path) as source:
                found = b"".join(iter(lambda source=source: source.read(1000), b""))
        except UnreadableError:
            assert stop < 100
            continue
        assert text.startswith(found)
        assert source.damage <= {"cut_file"}
        longest = max(longest, len(found))
    assert longest == len(text)


def test_any_header_is_stepped_over() -> None:
    """A member may carry extra fields, a name, a comment and a check of its header."""
    body = gzip.compress(b"text", mtime=0)[10:]
    header = b"\x1f\x8b\x08\x1e\0\0\0\0\0\0" + b"\x03\0abc" + b"name\0" + b"comment\0" + b"\x12\x34"
    damage: set[str] = set()
    salvaged = Salvaged(io.BytesIO(header + body), 1, damage)
    assert salvaged.read(100) == b"ext"
    assert salvaged.read(100) == b""
    assert damage == set()


def test_many_members_take_no_longer_each() -> None:
    """Little is read ahead of a member, since all of that is copied for each: a file may hold millions."""
    member = gzip.compress(b"x", mtime=0)
    file = io.BytesIO(member * 2000)
    salvaged = Salvaged(file, 0, set())
    assert salvaged.read(1000) == b"x" * 1000
    assert file.tell() < 1000 * len(member) + 10_000
    assert salvaged.read(2000) == b"x" * 1000


def test_a_bomb_behind_damage_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Salvaging is bounded as reading is: it unpacks in pieces, never a whole block at once."""
    monkeypatch.setattr("uncork.readers.source._BOMB_FLOOR_BYTES", 1 << 20)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(with_wrong_checksum(gzip.compress(b"[")) + gzip.compress(b" " * (64 << 20)))
    with pytest.raises(UnreadableError, match="unpacks to more than"):
        readers.read(path)
