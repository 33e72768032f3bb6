"""Tables: which columns people see, what they sort by, and how a place is spelt; shared by all text forms."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from uncork.errors import UsageError
from uncork.findings import Location
from uncork.report import Report
from uncork.units import format_quantity

Row = Mapping[str, Any]

# Columns by table, most telling first; a column without any value in the rows is left out.
COLUMNS: dict[str, tuple[str, ...]] = {
    "operators": (
        "rank", "name", "phase", "module", "place", "calls", "device_total_ns", "device_self_ns", "cpu_total_ns",
        "cpu_self_ns", "memory_bytes",
    ),
    "kernels": ("rank", "name", "class", "op", "module", "calls", "device_total_ns", "mean_ns", "device_share"),
    "functions": ("rank", "name", "place", "calls", "cpu_total_ns", "cpu_self_ns"),
    "collectives": ("rank", "name", "group", "calls", "bytes", "device_total_ns", "wait_ns", "exposed_ns"),
}  # fmt: skip
SORT_KEYS = {
    "device_total": "device_total_ns",
    "device_self": "device_self_ns",
    "cpu_total": "cpu_total_ns",
    "cpu_self": "cpu_self_ns",
    "calls": "calls",
    "memory": "memory_bytes",
}


def top_rows(report: Report, table: str, sort: str, top: int, rank: int | None) -> list[Row]:
    """Return the first rows of a table by a sort key; a table without that column keeps its own order.

    Raises:
        UsageError: The key is not one of `SORT_KEYS`.
    """
    if sort and sort not in SORT_KEYS:
        raise UsageError(f"There is no sort key {sort!r}.", f"Choose one of: {', '.join(SORT_KEYS)}.")
    rows: Sequence[Row] = [row for row in report.tables.get(table, ()) if rank is None or row.get("rank", rank) == rank]
    column = SORT_KEYS.get(sort, "")
    if column and any(row.get(column) is not None for row in rows):
        rows = sorted(rows, key=lambda row: -(row.get(column) or 0))
    return list(rows[:top])


def shown_columns(table: str, rows: Sequence[Row]) -> list[str]:
    """Return the columns of a table that hold something in these rows."""
    return [
        column
        for column in COLUMNS.get(table, ())
        if any(cell(row, column) not in ("", "0", "0 ns", "0 B") for row in rows)
    ]


def cell(row: Row, column: str) -> str:
    """Return the text of one cell."""
    if column == "place":
        return place(row.get("file"), row.get("line"), None)
    value = row.get(column)
    return "" if value is None else format_quantity(column, value)


def place(file: str | None, line: int | None, function: str | None) -> str:
    """Return a source place as people write it, the file relative to where they are: ``train.py:41 step``."""
    if not file:
        return function or ""
    here = os.path.relpath(file) if os.path.isabs(file) else file  # noqa: PTH117
    shown = file if here.startswith("..") else here
    if len(shown) > 40:
        shown = "…/" + "/".join(shown.replace("\\", "/").split("/")[-2:])
    return f"{shown}:{line}" + (f" {function}" if function else "") if line else shown


def where(location: Location) -> list[str]:
    """Return the parts of a location worth showing, most telling first."""
    parts = [place(location.file, location.line, location.function), location.module or "", location.op or ""]
    if location.rank is not None:
        parts.append(f"rank {location.rank}")
    return [part for part in parts if part]
