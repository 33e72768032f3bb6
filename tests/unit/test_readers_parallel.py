"""Reading with two threads gives what reading with one gives, wherever the pieces fall."""

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.unit.test_readers_scanners import rows_of
from uncork.errors import UncorkError
from uncork.readers import document, parallel
from uncork.readers.columns import Scanned
from uncork.readers.document import scan
from uncork.readers.engine import new_scanner
from uncork.readers.source import Source

pytest.importorskip("uncork.readers.scan", reason="the compiled scanner is not built here")

EVENTS = [
    {
        "ph": "X",
        "cat": f"cat{i % 3}",
        "name": f"name {i % 7} }},{{",
        "pid": i % 2,
        "tid": f"t{i % 5}",
        "ts": i + 0.5,
        "dur": 1,
        "args": {"x": i, f"k{i % 4}": [{"ph": "X", "ts": 1}, {"ph": "i"}], "f": i / 8, "t": f"text{i % 11}"},
    }
    for i in range(60)
]
DOCUMENTS = {
    "list": json.dumps(EVENTS),
    "open list": json.dumps(EVENTS)[:-1],
    "object": json.dumps({"schemaVersion": 1, "traceEvents": EVENTS, "baseTimeNanoseconds": 7}),
    "lines": json.dumps({"traceEvents": EVENTS, "z": {"a": [1]}}, indent=1),
    "wrapped": json.dumps({"traceEvents": {"traceEvents": EVENTS, "in": 1}, "out": 2}),
    "cut": json.dumps({"traceEvents": EVENTS})[:-40],
}


def facts(scanned: Scanned) -> tuple[object, ...]:
    """Return everything that must agree."""
    return rows_of(scanned), scanned.header, +scanned.repairs, scanned.whole_numbers, scanned.huge_times


def serial(path: Path) -> Scanned:
    """Return a file's columns read by one thread."""
    with Source(path) as source:
        return scan(source, new_scanner())


class Pieces:
    """A text handed out in pieces of one size, whatever is wanted."""

    damage: frozenset[str] = frozenset()
    path = Path("pieces")

    def __init__(self, text: bytes, size: int) -> None:
        self.pieces = [text[place : place + size] for place in range(0, len(text), size)]

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next piece."""
        del wanted_bytes
        return self.pieces.pop(0) if self.pieces else b""


def shared(text: bytes, size: int) -> tuple[Scanned, int]:
    """Return a text's columns read by two threads in pieces of a size, and how often they were of use."""
    source, scanner, useful = Pieces(text, size), new_scanner(), 0
    threads = parallel.Shared(source, scanner)

    def read_on(rest: bytes) -> tuple[bytes, bool]:
        nonlocal useful
        left, of_use = threads.read_on(rest)
        useful += of_use
        return left, of_use

    return scan(source, scanner, read_on), useful


@pytest.mark.parametrize("form", DOCUMENTS)
@pytest.mark.parametrize("two", [1, 2])
def test_pieces_equal_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, two: int) -> None:
    """In pieces of any size, which may end inside a name that looks like an event, the columns are the same."""
    path = tmp_path / "trace.json"
    text = DOCUMENTS[form].encode()
    path.write_bytes(text)
    expected = facts(serial(path))
    monkeypatch.setattr("os.cpu_count", lambda: two)
    monkeypatch.setattr(document, "_CHUNK_BYTES", 1)
    proven = 0
    for size in [*range(150, 1000, 7), 2000, len(text)]:
        found, useful = shared(text, size)
        proven += useful
        assert facts(found) == expected, size
    assert proven >= 50


@pytest.mark.parametrize("form", DOCUMENTS)
def test_damage_costs_two_threads_what_it_costs_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """A name with a quote in it, an event that is none and a comma too many are mended wherever the pieces fall."""
    plain = DOCUMENTS[form].replace(" },{", "")
    plain = re.sub(r'\{\s*"ph": "X",\s*"ts": 1\s*\},\s*\{\s*"ph": "i"\s*\}', "1, 2", plain)
    text = plain.replace('"name 3"', '"name "3" three"').replace('"dur": 1,', '"dur": 1,,', 1).encode()
    path = tmp_path / "trace.json"
    path.write_bytes(text)
    expected = facts(serial(path))
    assert expected[2]["quotes"] >= 8
    assert expected[2]["commas"] == 1
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(document, "_CHUNK_BYTES", 1)
    for size in range(200, 2000, 61):
        assert facts(shared(text, size)[0]) == expected, size


def test_a_packed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed file of several pieces read by two threads equals the same read by one, cut anywhere too."""
    monkeypatch.setattr(parallel, "_WORTH_SHARING_BYTES", 0)
    monkeypatch.setattr(parallel, "_PIECE_BYTES", 20_000)
    monkeypatch.setattr(document, "_CHUNK_BYTES", 20_000)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    text = json.dumps({"traceEvents": [event | {"id": i} for i, event in enumerate(EVENTS * 20)]}).encode()
    path = tmp_path / "trace.json.gz"
    packed = gzip.compress(text)
    path.write_bytes(packed)
    whole = facts(parallel.scan_file(path))
    assert whole == facts(serial(path))
    assert len(whole[0]) == 20 * len(EVENTS)
    for stop in range(len(packed) - 40, 3000, -len(packed) // 20):
        path.write_bytes(packed[:stop])
        cut = parallel.scan_file(path)
        assert cut.repairs["cut_file"] == 1
        assert rows_of(cut) == whole[0][: len(cut)]
    assert len(cut) < 700


def test_errors_while_unpacking_ahead_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb found by the unpacking thread stops the reading."""
    monkeypatch.setattr(parallel, "_WORTH_SHARING_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("uncork.readers.source._BOMB_FLOOR_BYTES", 1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"[" + b" " * (64 << 20)))
    with pytest.raises(UncorkError, match="unpacks to more"):
        parallel.scan_file(path)


def test_progress_reaches_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress grows to the size of the file with both ways of reading."""
    monkeypatch.setattr(parallel, "_WORTH_SHARING_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr(parallel, "_PIECE_BYTES", 20_000)
    monkeypatch.setattr(document, "_CHUNK_BYTES", 20_000)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(EVENTS * 20))
    told: list[tuple[int, int]] = []
    parallel.scan_file(path, lambda done, size: told.append((done, size)))
    assert told == sorted(told)
    assert len(told) > 3
    assert told[-1] == (path.stat().st_size, path.stat().st_size)


def test_more_keys_than_any_recording_has_are_refused_in_a_line(tmp_path: Path) -> None:
    """Columns are kept per key of ``args``: 61,000 keys, met by two threads, end in one clear line."""
    path = tmp_path / "trace.json"
    events = (f'{{"ph":"X","cat":"cpu_op","name":"n","ts":{i},"dur":1,"args":{{"k{i}":1}}}}' for i in range(61_000))
    path.write_text(f"[{','.join(events)}]")
    with pytest.raises(UncorkError, match="60,000 different keys"):
        parallel.scan_file(path)
