"""Marks on a table's rows: where the articles' reading rules for statistics tables fire (requirements R4.3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncork.operators import operator_class
from uncork.reading_rules import LOADER_SHARE, TINY_CALLS, TOP_COMPUTE_SHARE, TOP_MEMORY_SHARE, is_compute, is_memory

TINY_SELF_NS = 10_000
"""A call is tiny where it takes what calling an operator costs (5–10 µs)."""
_TOP = 3


def reading_marks(table: str, rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return row → key of the reading rule that fires on it (``reading.<id>`` in the catalogue)."""
    if table != "operators" or not rows:
        return {}
    column = "device_self_ns" if any(row.get("device_self_ns") for row in rows) else "cpu_self_ns"
    marks = _many_calls(rows)
    marks |= _top_of(rows, column, is_memory, TOP_MEMORY_SHARE, "reading.top_memory")
    marks |= _top_of(rows, column, is_compute, TOP_COMPUTE_SHARE, "reading.top_compute")
    return marks | _loader_on_top(rows)


def _whole(rows: Sequence[Mapping[str, Any]], column: str) -> float:
    return sum(row.get(column) or 0 for row in rows)


def _largest(rows: Sequence[Mapping[str, Any]], column: str) -> list[int]:
    return sorted(range(len(rows)), key=lambda place: -(rows[place].get(column) or 0))


def _top_of(
    rows: Sequence[Mapping[str, Any]], column: str, of_kind: Callable[[str, str], bool], limit: float, key: str
) -> dict[int, str]:
    """Return marks on the three largest rows of a class if together they take more than a share of all."""
    whole = _whole(rows, column)
    kind = [of_kind(str(row.get("kernel_class") or ""), _class(row)) for row in rows]
    top = [place for place in _largest(rows, column) if kind[place]][:_TOP]
    taken = sum(rows[place].get(column) or 0 for place in top)
    return dict.fromkeys(top, key) if whole and taken > limit * whole else {}


def _loader_on_top(rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    whole = _whole(rows, "cpu_self_ns")
    first = _largest(rows, "cpu_self_ns")[0]
    row = rows[first]
    is_loader = _class(row) == "loader"
    return {first: "reading.loader"} if is_loader and (row.get("cpu_self_ns") or 0) > LOADER_SHARE * whole > 0 else {}


def _class(row: Mapping[str, Any]) -> str:
    return str(row.get("op_class") or operator_class(str(row.get("name", ""))))


def _many_calls(rows: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    found = {}
    for place, row in enumerate(rows):
        calls = row.get("calls") or 0
        if calls > TINY_CALLS and (row.get("cpu_self_ns") or 0) < TINY_SELF_NS * calls:
            found[place] = "reading.many_calls"
    return found
