"""Tables: which columns people see, what they sort by, and how a place is spelt; shared by all text forms."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from uncork.compare import quiet_steps
from uncork.errors import UsageError
from uncork.findings import Finding, Location
from uncork.locale import say
from uncork.measure.views.names import printable
from uncork.report import Report
from uncork.rules.kernel_names import short
from uncork.units import format_bytes_range, format_ns, format_quantity, format_share

Row = Mapping[str, Any]

_OTHERWISE_SHARE = 0.1
"""Times of a step further apart than this are told beside each other, and what each is."""
NOTHING_SHARE = 0.0005
"""A gain below this would read "−<0.1 %": it counts as not estimated."""

# Columns by table, most telling first; a column without any value in the rows is left out.
COLUMNS: dict[str, tuple[str, ...]] = {
    "operators": (
        *("rank", "name", "phase", "module", "place", "calls_per_step"),
        *("device_total_ns", "device_self_ns", "cpu_total_ns", "cpu_self_ns", "memory_bytes"),
    ),
    "kernels": ("rank", "name", "kind", "op", "calls_per_step", "device_ns", "mean_ns", "share"),
    "functions": ("rank", "name", "place", "calls", "total_ns", "self_ns"),
    "regions": ("rank", "name", "inside", "calls_per_step", "host_ns", "host_self_ns", "device_ns"),
    "collectives": (
        "rank",
        "name",
        "group",
        "calls_per_step",
        "size_bytes",
        "bytes_per_s",
        "device_ns",
        "step_share",
        "exposed_ns",
    ),
    "copies": (
        *("rank", "name", "direction", "host_memory", "place", "calls_per_step"),
        *("size_bytes", "bytes_per_s", "device_ns", "step_share", "exposed_ns", "host_ns"),
    ),
}
TEXT_COLUMNS = frozenset(
    {"name", "inside", "phase", "module", "place", "kind", "op", "group", "direction", "host_memory"}
)
# What a narrow terminal leaves out, first to last; name, calls and times of one kind always stay.
_DROPPED_FIRST = (
    *("memory_bytes", "phase", "mean_ns", "kind", "op", "group", "device_total_ns", "cpu_total_ns", "module"),
    *("cpu_self_ns", "calls_per_step", "place", "inside"),
)
# Of copies the place and the count say more than times that are nearly the same.
_DROPPED_EARLIER = {"copies": ("host_ns", "bytes_per_s", "device_ns")}
_LEAST_WIDTHS = {
    "name": 26, "place": 22, "direction": 4, "host_memory": 9, "device_total_ns": 10,
    "rank": 4, "calls": 7, "calls_per_step": 7, "share": 7, "step_share": 7,
}  # fmt: skip
_NAMES_OF_COPIES_WIDTH = 16
_LEAST_HEAD = 6
_FIGURE_WIDTH, _TEXT_WIDTH, _PADDING = 9, 12, 2
# What a sort key means in each table: the first of these columns that the table has.
SORT_KEYS: dict[str, tuple[str, ...]] = {
    "device_total": ("device_total_ns", "device_ns"),
    "device_self": ("device_self_ns", "device_ns"),
    "cpu_total": ("cpu_total_ns", "total_ns", "host_ns"),
    "cpu_self": ("cpu_self_ns", "self_ns", "host_self_ns", "host_ns"),
    "calls": ("calls_per_step", "calls"),
    "memory": ("memory_bytes", "size_bytes"),
}


def top_rows(report: Report, table: str, sort: str, top: int, rank: int | None) -> list[Row]:
    """Return the first rows of a table by a sort key; a table without that column keeps its own order.

    Raises:
        UsageError: The key is not one of `SORT_KEYS`.
    """
    if sort and sort not in SORT_KEYS:
        raise UsageError("sort_key", key=sort, known=", ".join(SORT_KEYS))
    rows: Sequence[Row] = [row for row in report.tables.get(table, ()) if rank is None or row.get("rank", rank) == rank]
    known = [column for column in SORT_KEYS.get(sort, ()) if any(row.get(column) is not None for row in rows)]
    if known:
        rows = sorted(rows, key=lambda row: -(row.get(known[0]) or 0))
    return list(rows[:top])


def shown_columns(table: str, rows: Sequence[Row]) -> list[str]:
    """Return the columns of a table that hold something in these rows."""
    return [
        column
        for column in COLUMNS.get(table, ())
        if any(cell(table, row, column) not in ("", "0", "0 ns", "0 B") for row in rows)
    ]


def fitting(table: str, columns: Sequence[str], width: int) -> dict[str, int]:
    """Return the columns that fit into a width, and how wide each may be; names get what the others leave."""
    least = {column: _least_width(table, column) for column in columns}
    for column in ("", *_DROPPED_EARLIER.get(table, ()), *_DROPPED_FIRST):
        least.pop(column, None)
        if sum(least.values()) <= width:
            break
    kept = list(least)
    spare = max(0, width - sum(least.values()))
    texts = [one for one in kept if one in TEXT_COLUMNS]
    extra = spare // (len(texts) + 1) if texts else 0
    return {one: least[one] - _PADDING + extra * (2 if one == "name" else one in TEXT_COLUMNS) for one in kept}


def _least_width(table: str, column: str) -> int:
    """Return what a column takes at least, the room to the next one included."""
    if (table, column) == ("copies", "name"):
        return _NAMES_OF_COPIES_WIDTH + _PADDING
    return _LEAST_WIDTHS.get(column, _TEXT_WIDTH if column in TEXT_COLUMNS else _FIGURE_WIDTH) + _PADDING


def cell(table: str, row: Row, column: str, lang: str = "en") -> str:
    """Return the text of one cell; names are the recording's, those of kernels shortened; phases are ours."""
    if column == "phase" and row.get("phase"):
        return say(lang, f"phase.{row['phase']}")
    if column == "host_memory" and row.get("host_memory") == "unknown":
        return say(lang, "host_memory.unknown")
    if column == "place":
        return _short_place(row.get("file"), row.get("line"))
    if column == "name":
        name = str(row.get("name", ""))
        return printable(short(name) if table == "kernels" else name)
    value = row.get(column)
    return "" if value is None else printable(format_quantity(column, value))


def both_ends(name: str, width: int) -> str:
    """Return a kernel's name for a narrow column: where it is too long, the argument that tells stays whole."""
    head, angle, tail = name.partition("<")
    room = width - len(angle + tail) - 1
    return f"{head[:room]}…{angle}{tail}" if angle and len(name) > width and room >= _LEAST_HEAD else name


def _short_place(file: str | None, line: int | None) -> str:
    """Return ``model.py:41`` for a table's narrow column; built-in functions have no place."""
    if not file or file == "~":
        return ""
    name = printable(file.replace("\\", "/").rsplit("/", 1)[-1])
    return f"{name}:{line}" if line else name


def _from_here(file: str) -> str:
    """Return a file relative to where people are; as it is where that folder is gone, or on another drive."""
    try:
        return os.path.relpath(file)
    except (OSError, ValueError):
        return file


def place(file: str | None, line: int | None, function: str | None) -> str:
    """Return a source place as people write it, the file relative to where they are: ``train.py:41 step``."""
    if not file:
        return function or ""
    here = _from_here(file) if os.path.isabs(file) else file  # noqa: PTH117
    shown = file if here.startswith("..") else here
    if len(shown) > 40:
        shown = "…/" + "/".join(shown.replace("\\", "/").split("/")[-2:])
    return f"{shown}:{line}" + (f" {function}" if function else "") if line else shown


def where(location: Location) -> list[str]:
    """Return the parts of a location worth showing, most telling first."""
    parts = [place(location.file, location.line, location.function), location.module or "", location.op or ""]
    if location.rank is not None:
        parts.append(f"rank {location.rank}")
    return [printable(part) for part in parts if part]


def saved_memory(finding: Finding, between: str = "…") -> str:
    """Return the range of memory that a finding frees, empty where none is known."""
    high = finding.params.get("saved_bytes")
    if not isinstance(high, int) or not high:
        return ""
    low = finding.params.get("saved_low_bytes")
    return f"−{format_bytes_range(low if isinstance(low, int) else high, high, between)}"


def step_facts(run: Mapping[str, Any], lang: str) -> list[str]:
    """Return how many steps were recorded and how long they took, and what they take when no profiler watches them."""
    if not run.get("marked_steps") or not run.get("median_step_ns"):
        return []
    recorded_ns, bare_ns = run["median_step_ns"], (quiet_steps(run) or {}).get("median_step_ns")
    is_told = bare_ns is not None and abs(recorded_ns - bare_ns) > _OTHERWISE_SHARE * bare_ns > 0
    key = ("ui.step" if run["steps"] == 1 else "ui.steps") + (".watched" if is_told else "")
    facts = [say(lang, key, {"steps": run["steps"], "median_ns": recorded_ns})]
    return [*facts, say(lang, "ui.bare_step", {"bare_ns": bare_ns})] if is_told else facts


def divided_step(run: Mapping[str, Any], mean_ns: int, lang: str) -> str:
    """Return how long the step is that the causes sum to, and that this is a mean where the median is another.

    Args:
        run: The report's run.
        mean_ns: Its length.
        lang: Language.
    """
    median_ns = run.get("median_step_ns") if run.get("marked_steps") else None
    if not median_ns or abs(mean_ns - median_ns) <= _OTHERWISE_SHARE * median_ns:
        return format_ns(mean_ns)
    return say(lang, "ui.mean_step", {"mean_ns": mean_ns})


def gain(finding: Finding, lang: str) -> str:
    """Return what a finding is worth as a range of the step, else the memory it frees; nothing where not estimated."""
    low, high = format_share(finding.gain.low), format_share(finding.gain.high)
    if finding.gain.high < NOTHING_SHARE:
        return saved_memory(finding)
    if finding.gain.low < NOTHING_SHARE:
        return say(lang, "ui.up_to", {"gain": f"−{high}"})
    return f"−{high}" if low == high else f"−{low.removesuffix(' %')}…{high}"
