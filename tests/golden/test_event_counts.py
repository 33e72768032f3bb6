"""Every valid trace of the shared corpus gives as many events as a plain count by the standard library's json."""

import gzip
import io
import json
import math
import zipfile
from collections import Counter
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pytest

from uncork import readers
from uncork.errors import UnreadableError


def text_of(path: Path) -> bytes:
    """Return a file's bytes, unpacked by the standard library."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        return gzip.decompress(raw)
    if raw[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return archive.read(archive.namelist()[0])
    return raw


def _refuse(word: str) -> None:
    raise ValueError(word)


def events_of(path: Path) -> list[object] | None:
    """Return the events of a valid trace document, None for any other file."""
    try:
        document = json.loads(text_of(path), parse_constant=_refuse)
    except (ValueError, EOFError, OSError):
        return None
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if isinstance(events, list) and any(isinstance(event, dict) and "ph" in event for event in events):
        return events
    return None


def is_number(value: object) -> bool:
    """Return whether a time is a number, written as one or as text."""
    if isinstance(value, float):
        return math.isfinite(value)
    try:
        return not isinstance(value, bool) and Decimal(str(value)).is_finite()
    except InvalidOperation:
        return False


def rows(events: list[object]) -> int:
    """Return how many rows a table of events should have: slices, closed begins, instants, flow ends and counters."""
    count = 0
    begins: Counter[tuple[str, str]] = Counter()
    timed = [event for event in events if isinstance(event, dict) and is_number(event.get("ts"))]
    for event in sorted(timed, key=lambda event: Decimal(str(event["ts"])) if event.get("ph") in ("B", "E") else 0):
        phase = event.get("ph")
        track = str(event.get("pid")), str(event.get("tid"))
        if phase == "X":
            named = isinstance(event.get("name"), str)
            count += named and is_number(event.get("dur")) and Decimal(str(event["dur"])) >= 0
        elif phase == "B":
            begins[track] += isinstance(event.get("name"), str)
        elif phase == "E":
            count += begins[track] > 0
            begins[track] -= begins[track] > 0
        elif isinstance(phase, str) and len(phase) == 1 and phase != "M":
            count += 1
    return count


@pytest.mark.slow
def test_event_counts_equal_those_of_the_standard_library(shared: Path) -> None:
    """No event is lost and none is made up, on every valid trace; the refused ones are those that must be."""
    compared, refused = 0, []
    for path in sorted((shared / "corpus").rglob("*")):
        if not path.is_file() or path.suffix not in {".json", ".gz", ".zip"}:
            continue
        events = events_of(path)
        if events is None:
            continue
        try:
            found = readers.read(path)
        except UnreadableError as refusal:
            refused.append((path.name, refusal.id))
            continue
        lost = found[0].repairs.get("lost_records", 0)
        assert sum(len(one.events) for one in found if one.events is not None) + lost == rows(events), path
        compared += 1
    assert compared > 150
    stated = {"trace_empty", "ranks_mixed", "trace_of_another_tool"}
    assert [one for one in refused if one[1] not in stated and not one[1].startswith("foreign_")] == []
    assert len(refused) < 15, refused
