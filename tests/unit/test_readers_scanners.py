"""Both scanners give what a plain JSON reading in exact decimals gives."""

import gzip
import json
import re
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from uncork.errors import UncorkError, UnreadableError
from uncork.readers import document
from uncork.readers.columns import ABSENT, NOT_A_NUMBER, Scanned
from uncork.readers.document import Scanner, scan
from uncork.readers.portable import PortableScanner
from uncork.readers.source import Source


def scanners() -> list[type[Scanner]]:
    """Return the scanners that this installation has."""
    try:
        from uncork.readers.scan import CompiledScanner
    except ImportError:
        return [PortableScanner]
    return [PortableScanner, CompiledScanner]


each_scanner = pytest.mark.parametrize("scanner", scanners())


def rows_of(scanned: Scanned) -> list[dict[str, object]]:
    """Return the events as plain dicts."""
    rows = []
    for form, name, track, ts, dur in zip(
        scanned.form, scanned.name, scanned.track, scanned.ts_ns, scanned.dur_ns, strict=True
    ):
        phase, category = scanned.forms[form].tolist()
        pid, tid = scanned.tracks[track].tolist()
        texts = {"cat": category, "name": int(name), "pid": pid, "tid": tid}
        row: dict[str, object] = {key: scanned.text(index) for key, index in texts.items() if index >= 0}
        times = {key: int(value) for key, value in (("ts", ts), ("dur", dur)) if value not in (ABSENT, NOT_A_NUMBER)}
        rows.append(row | times | {"ph": chr(phase), "args": {}})
    for key, column in scanned.args.items():
        for part, decode in (
            (column.ints, int),
            (column.floats, float),
            (column.texts, lambda index: scanned.text(int(index))),
            (column.nested, lambda index: scanned.strings.value(int(index))),
        ):
            for row, value in zip(*part, strict=True) if part else ():
                assert key not in rows[row]["args"]
                rows[row]["args"][key] = decode(value)
    return rows


def expected_rows(events: list[object]) -> list[dict[str, object]]:
    """Return what events decoded with exact decimals should come out as."""
    rows = []
    for event in events:
        row = {"ph": event["ph"], "args": {}}
        row |= {key: event[key] for key in ("cat", "name") if isinstance(event.get(key), str)}
        row |= {key: str(event[key]) for key in ("pid", "tid") if event.get(key) is not None}
        for key in ("ts", "dur"):
            if event.get(key) is not None:
                row[key] = int((Decimal(event[key]) * 1000).to_integral_value(ROUND_HALF_UP))
        flow = {"@id": event.get("id"), "@bp": event.get("bp")}
        for key, value in (event.get("args", {}) | flow).items():
            if value is not None:
                row["args"][key] = _floats(value)
        rows.append(row)
    return rows


def _floats(value: object, *, top: bool = True) -> object:
    """Return decimals as floats; a whole number beyond 64 bits becomes one where it stands alone."""
    if isinstance(value, Decimal):
        return float(value)
    if top and isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return float(value)
    if isinstance(value, list):
        return [_floats(item, top=False) for item in value]
    if isinstance(value, dict):
        return {key: _floats(item, top=False) for key, item in value.items()}
    return value


def scanned_text(path: Path, text: bytes, scanner: type[Scanner]) -> Scanned:
    """Return a text's columns."""
    path.write_bytes(text)
    with Source(path) as source:
        return scan(source, scanner())


DOCUMENT = rb"""{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A \"B\""}],
"traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 12, "tid": "7", "ts": 1712195495519806.264, "dur": 1.5,
   "args": {"External id": 3, "Input Dims": [[2, 3], [3, 4]], "est": 0.125, "big": 123456789012345678901, "no": null}},
  {"name": "a\u0062\n\"c\"\\", "ph": "i", "s": "t", "ts": -0.5, "pid": null, "tid": 4, "args": {}},
  {"ph":"s","id":5,"pid":12,"tid":"7","ts":1e3,"cat":"ac2g","name":"ac2g"} , {"ph":"f","id":"x","bp":"e","ts":"17.0005"}
 ], "traceName": "x", "baseTimeNanoseconds": 1700000000000000000}"""


@each_scanner
def test_columns_by_hand(tmp_path: Path, scanner: type[Scanner]) -> None:
    """Every field of a small document comes out as worked out by hand."""
    found = scanned_text(tmp_path / "a.json", DOCUMENT, scanner)
    assert rows_of(found) == [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": "12",
            "tid": "7",
            "ts": 1712195495519806264,
            "dur": 1500,
            "args": {
                "External id": 3,
                "Input Dims": [[2, 3], [3, 4]],
                "est": 0.125,
                "big": 1.2345678901234568e20,
            },
        },
        {"ph": "i", "name": 'ab\n"c"\\', "tid": "4", "ts": -500, "args": {}},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "pid": "12", "tid": "7", "ts": 1_000_000, "args": {"@id": 5}},
        {"ph": "f", "ts": 17001, "args": {"@id": "x", "@bp": "e"}},
    ]
    assert found.header["baseTimeNanoseconds"] == 1700000000000000000
    assert found.header["deviceProperties"] == [{"id": 0, "name": 'A "B"'}]
    assert +found.repairs == Counter(text_times=1)


@each_scanner
@pytest.mark.parametrize(
    ("number", "ts_ns"),
    [
        ("0", 0),
        ("-0", 0),
        ("1", 1000),
        ("1.0", 1000),
        ("0.001", 1),
        ("0.0004999", 0),
        ("0.0005", 1),
        ("-1.2345", -1235),
        ("12.77012757357446", 12770),
        ("9007199254740993.001", 9007199254740993001),
        ("1.5E+2", 150_000),
        ("12345e-4", 1235),
    ],
)
def test_times_are_exact(tmp_path: Path, scanner: type[Scanner], number: str, ts_ns: int) -> None:
    """A time is the decimal that is written, in ns, rounded half away from zero beyond the third place."""
    for text in (number, f'"{number}"'):
        found = scanned_text(tmp_path / "a.json", f'[{{"ph":"X","ts":{text},"dur":1}}]'.encode(), scanner)
        assert found.ts_ns.tolist() == [ts_ns]


@each_scanner
def test_times_beyond_the_year_2261_are_nanoseconds(tmp_path: Path, scanner: type[Scanner]) -> None:
    """Epoch times written in ns cannot be µs, are kept as ns and counted."""
    found = scanned_text(tmp_path / "a.json", b'[{"ph":"X","ts":1712195495519806264,"dur":1}]', scanner)
    assert found.ts_ns.tolist() == [1712195495519806264]
    assert found.huge_times == 1
    assert found.whole_numbers


@each_scanner
def test_the_last_of_equal_keys_wins(tmp_path: Path, scanner: type[Scanner]) -> None:
    """Of a key given twice the last value counts, as in Python."""
    text = rb'[{"ph":"X","ts":1,"name":"a","name":"b","args":{"x":1},"args":{"y":1,"y":2,"z":3,"y":"4"}}]'
    (row,) = rows_of(scanned_text(tmp_path / "a.json", text, scanner))
    assert row == {"ph": "X", "ts": 1000, "name": "b", "args": {"y": "4", "z": 3}}
    text = b'[{"ph":"X","ts":1,"args":7,"args":{"x":1}},{"ph":"X","ts":1,"args":{"x":1},"args":[]}]'
    found = scanned_text(tmp_path / "a.json", text, scanner)
    assert [row["args"] for row in rows_of(found)] == [{"x": 1}, {}]
    assert +found.repairs == Counter(odd_args=1)


@each_scanner
def test_escaped_keys_are_keys(tmp_path: Path, scanner: type[Scanner]) -> None:
    """Keys written with escapes are the same keys."""
    text = (
        rb'[{"p\u0068":"\u0058","\u0074s":2,"args":{"External\u0020id":1}},{"ph":"X","ts":3,"args":{"External id":2}}]'
    )
    rows = rows_of(scanned_text(tmp_path / "a.json", text, scanner))
    assert [row["args"] for row in rows] == [{"External id": 1}, {"External id": 2}]
    assert [(row["ph"], row["ts"]) for row in rows] == [("X", 2000), ("X", 3000)]


@each_scanner
def test_shared_traces_equal_the_standard_library(shared: Path, tmp_path: Path, scanner: type[Scanner]) -> None:
    """On every valid trace of moderate size, each event, time and argument equals json's in exact decimals."""
    del tmp_path
    compared = 0
    for path in sorted((shared / "corpus").glob("*/*/*.json.gz")) + sorted(
        (shared / "corpus" / "cases").glob("*/*.json")
    ):
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        if len(text) > 1_000_000:
            continue
        try:
            document = json.loads(text, parse_float=Decimal)
        except ValueError:
            continue
        events = document.get("traceEvents") if isinstance(document, dict) else document
        if not events or not all(isinstance(event, dict) and "ph" in event for event in events):
            continue
        with Source(path) as source:
            assert rows_of(scan(source, scanner())) == expected_rows(events), path.name
        compared += 1
    assert compared > 50


@each_scanner
def test_a_damaged_event_costs_only_itself(tmp_path: Path, scanner: type[Scanner]) -> None:
    """Of a thousand events one is beyond repair: the others stay, and one is counted."""
    events = [b'{"ph":"X","name":"n%d","ts":%d,"dur":1,"args":{"a":[1,{"b":2}]}}' % (i, i) for i in range(1000)]
    events[500] = b'{"ph":"X","name":"n","ts":1,"dur":[}1,"args":{}}'
    found = scanned_text(tmp_path / "a.json", b"[" + b",\n".join(events) + b"]", scanner)
    assert len(found) == 999
    assert +found.repairs == Counter(unreadable_events=1)


@each_scanner
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('say "hi"', 'say "hi"'),
        ('{"device": "cuda", "dtype": "half"}(12): run', '{"device": "cuda", "dtype": "half"}(12): run'),
        ("C:\\data\\", "C:\\data\\"),
        (r"\u12 \q", r"\u12 \q"),
        ("tab\there", "tab\there"),
        (r"fine \"already\"", 'fine "already"'),
    ],
)
def test_names_with_what_should_be_escaped(tmp_path: Path, scanner: type[Scanner], written: str, meant: str) -> None:
    """Names that hold raw quotes, backslashes or control characters come back as meant, in the layout of Kineto."""
    first = f'{{"ph": "X", "cat": "c", "name": "{written}", "pid": 1, "tid": 1, "ts": 5, "dur": 2}}'
    found = scanned_text(tmp_path / "a.json", f'[{first}, {{"ph": "i", "ts": 6}}]'.encode(), scanner)
    assert found.ts_ns.tolist() == [5000, 6000]
    assert rows_of(found)[0]["name"] == meant
    assert bool(+found.repairs) == (written != json.dumps(meant)[1:-1])


class Counting:
    """A pattern that counts the characters it was asked to look through."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern = pattern
        self.asked = 0

    def search(self, text: bytes, place: int) -> re.Match[bytes] | None:
        """Search on."""
        found = self.pattern.search(text, place)
        self.asked += (found.start() if found else len(text)) - place
        return found


@each_scanner
@pytest.mark.parametrize("space", [" ", "\xa0"])
def test_damage_all_through_is_looked_through_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanner: type[Scanner], space: str
) -> None:
    """Where every event is damaged and none begins as events do, the time grows with the text, not with its square."""
    counting = Counting(document._EVENT_START)
    monkeypatch.setattr(document, "_EVENT_START", counting)
    events = [f'{{{space}"own": {i}, "ph": "X", "name": "a "b" c", "ts": {i}, "dur": 2}}' for i in range(2000)]
    text = f"[{','.join(events)}]".encode()
    found = scanned_text(tmp_path / "a.json", text, scanner)
    assert len(found) == 2000
    assert {row["name"] for row in rows_of(found)} == {'a "b" c'}
    assert counting.asked < 2 * len(text)


@each_scanner
@pytest.mark.parametrize("length", [65_400, 65_470, 65_480, 65_500, 65_530, 65_600, 1_100_000])
def test_long_damaged_events_are_mended_whole(tmp_path: Path, scanner: type[Scanner], length: int) -> None:
    """However a damaged event lies to the stretch that is looked at first, it is read to its own end."""
    name = 'a "b"} c' + "x" * length
    events = (
        f'{{"own": 1, "ph": "X", "name": "{name}", "ts": 5, "dur": 2, "args": {{"a": "q"}}}}, {{"own": 2, "ph": "i"}}'
    )
    found = scanned_text(tmp_path / "a.json", f"[{events}]".encode(), scanner)
    assert [row.get("name") for row in rows_of(found)] == [name, None]
    assert rows_of(found)[0]["args"] == {"a": "q"}


@each_scanner
def test_hostile_documents_end_cleanly(tmp_path: Path, scanner: type[Scanner]) -> None:
    """Deep nesting, endless numbers and zero bytes never crash and never invent an event."""
    path = tmp_path / "a.json"
    good = b'{"ph":"X","ts":1,"dur":1}'
    for bad in (
        b'{"ph":"X","ts":1,"args":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b'{"ph":"X","name":"a\0b","ts":' + b"9" * 10_000 + b',"dur":1e999999999}',
        b'{"ph":"X","args":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
        b"\0\0",
    ):
        try:
            found = scanned_text(path, b"[" + good + b"," + bad + b"," + good + b"]", scanner)
        except UncorkError:
            continue
        assert len(found) in (1, 2, 3)
    with pytest.raises(UnreadableError):
        scanned_text(path, b"\0" * 100, scanner)
