"""Reading with two threads gives what reading with one gives, wherever the guess falls."""

import gzip
import json
from pathlib import Path

import pytest

from tests.unit.test_readers_scanners import rows_of
from uncork.errors import UncorkError
from uncork.readers import parallel
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


@pytest.mark.parametrize("form", DOCUMENTS)
def test_halves_equal_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """At every place where an event may seem to begin, true or not, the columns are the same."""
    path = tmp_path / "trace.json"
    text = DOCUMENTS[form].encode()
    path.write_bytes(text)
    expected = facts(serial(path))
    monkeypatch.setattr(parallel, "_WORTH_SPLITTING_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    proven = 0
    for middle in [place for place in range(1, len(text)) if text[place : place + 1] == b"{"] + [1, 5, len(text) - 1]:
        monkeypatch.setattr(parallel, "_middle", lambda _, middle=middle: middle)
        with Source(path) as source:
            proven += parallel._in_halves(source) is not None
        assert facts(parallel.scan_file(path)) == expected
    assert proven >= 50  # every true beginning but the first is a place to split at


def test_the_guess_lies_between_events(tmp_path: Path) -> None:
    """The guessed middle is a brace behind a comma."""
    path = tmp_path / "trace.json"
    path.write_text(DOCUMENTS["lines"])
    with Source(path) as source:
        middle = parallel._middle(source)
    assert middle is not None
    assert path.read_bytes()[middle : middle + 1] == b"{"


def test_unpacking_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A packed file read by two threads equals the same read by one; a cut one says so."""
    path = tmp_path / "trace.json.gz"
    monkeypatch.setattr(parallel, "_WORTH_AHEAD_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    packed = gzip.compress(DOCUMENTS["object"].encode())
    path.write_bytes(packed)
    assert facts(parallel.scan_file(path)) == facts(serial(path))
    path.write_bytes(packed[:-200])
    cut = parallel.scan_file(path)
    assert cut.repairs["cut_file"] == 1
    assert len(cut) < len(EVENTS)


def test_errors_while_unpacking_ahead_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb found by the unpacking thread stops the reading."""
    monkeypatch.setattr(parallel, "_WORTH_AHEAD_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("uncork.readers.source._BOMB_FLOOR_BYTES", 1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"[" + b" " * (64 << 20)))
    with pytest.raises(UncorkError, match="unpacks to more"):
        parallel.scan_file(path)


def test_progress_reaches_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress grows to the size of the file with both ways of reading."""
    monkeypatch.setattr(parallel, "_WORTH_SPLITTING_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    path = tmp_path / "trace.json"
    path.write_text(DOCUMENTS["lines"])
    told: list[tuple[int, int]] = []
    parallel.scan_file(path, lambda done, size: told.append((done, size)))
    assert told[-1] == (path.stat().st_size, path.stat().st_size)
