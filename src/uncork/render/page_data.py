"""The data that the HTML page draws from, beside its static first screen: texts, tables, sections, as JSON."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from uncork.compare import Comparison
from uncork.locale import LANGUAGES, catalogue
from uncork.measure.views.names import printable
from uncork.measure.views.steps_view import StepsView
from uncork.render.about_run import about
from uncork.render.comparison import KINDS, comparison_cautions, comparison_notes, told_findings
from uncork.render.evidence import match
from uncork.render.row_marks import reading_marks
from uncork.render.tables import COLUMNS, place
from uncork.report import Report, finding_texts, spell
from uncork.rules.kernel_names import short

Json = dict[str, Any]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]
# The page needs the texts of these corners of the catalogue only.
_SPOKEN = (
    *("page.", "cause.", "column.", "class.", "pattern.", "flame."),
    *("reading.", "compare.", "missing.", "record.", "memory.", "what_if.", "list.", "phase.", "host_memory."),
    *("ui.memory.segments", "ui.memory.no_history"),
)
_EMPTY = {"TimelineView": "page.timeline.empty", "FlameView": "page.flame.empty", "StepsView": "page.steps.empty"}
_MOST_ROWS = 2_000
_MOST_CHARACTERS = 1_000_000
MOST_BLOCK_BYTES = 12_000_000
"""Of all packed views, a third more in the page; with six tables of a million characters it stays below 25 MB."""
# Beyond what a terminal has room for; the JSON report holds every column.
_MORE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "operators": ("flop", "roofline_share", "dtype", "shapes", "kernel"),
    "kernels": ("precision", "occupancy_share", "blocks_per_multiprocessor", "module"),
}
_NOTHING = (None, "", 0)
_TELL_0 = frozenset({"rank", "exposed_ns"})
"""Columns in which nothing but zeros says something; others of zeros only are left out."""
_PLACES = frozenset({"module", "place"})
_LEFT_OUT_OF_TABLES = frozenset({"file", "line", "function"})


def page_data(report: Report, comparison: Comparison | None = None, run: str = "") -> Json:
    """Return what the page needs in both languages, plain values only; `run` is what to type to see it again."""
    titles = {lang: [finding_texts(one, lang)["title"] for one in report.findings] for lang in LANGUAGES}
    shown_ranks = ranks_of_page(report)
    return {
        "texts": {lang: _spoken(lang, report.views.get("Faults", ())) for lang in LANGUAGES},
        "finding_titles": {lang: [printable(title.replace("`", "")) for title in titles[lang]] for lang in LANGUAGES},
        "findings": [match(finding, report) for finding in report.findings],
        "tables": [_table(name, rows) for name, rows in _ordered(report.tables)],
        "short_names": _short_names(report.tables),
        "steps": {str(rank): _steps(views["StepsView"]) for rank, views in shown_ranks.items() if "StepsView" in views},
        "memory": _safe(report.memory),
        "comm": _safe(report.comm),
        "ranks": _ranks(report.views.get("Ranks")),
        "late_ranks": list(report.verdict.late_ranks),
        "shown_ranks": list(shown_ranks),
        "ranks_left_out": [number for number in report.views.get("Shown", {}) if number not in shown_ranks],
        "several_ranks": len(report.run.get("ranks", ())) > 1,
        "command": f"uncork open {shlex.quote(run)}" if run else "",
        "about": about(report),
        "compare": _compared(comparison) if comparison else None,
    }


def ranks_of_page(report: Report) -> Mapping[int, Mapping[str, Any]]:
    """Return the views of each rank that the page shows, by measurement name.

    Of several large ones, as many as the page has room for: the one with most time of its own always.
    """
    shown: Mapping[int | None, Mapping[str, Any]] = report.views.get("Shown", {})
    first, *others = shown or [None]
    kept, room = {first}, MOST_BLOCK_BYTES - _packed(shown.get(first, {}))
    for number in reversed(others):  # the fastest tells more beside the slowest than the median does
        room -= _packed(shown[number])
        if room >= 0:
            kept.add(number)
    return {number: views for number, views in shown.items() if number is not None and number in kept}


def _packed(views: Mapping[str, Any]) -> int:
    """Return the bytes of the packed views of a rank."""
    return sum(len(getattr(view, "block", b"")) for view in views.values())


def as_script(data: object) -> str:
    """Return data as JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(value: object) -> object:
    item = getattr(value, "tolist", None)
    return item() if item is not None else str(value)


def _spoken(lang: str, faults: Sequence[str]) -> dict[str, str]:
    """Return the texts that the page needs; a view that broke says so where it would say that nothing was recorded."""
    texts = {key: text for key, text in catalogue(lang).items() if key.startswith(_SPOKEN)}
    return texts | {key: texts["page.view.fault"] for name, key in _EMPTY.items() if name in faults}


def _ordered(tables: Tables) -> list[tuple[str, Sequence[Mapping[str, Any]]]]:
    known = [name for name in COLUMNS if tables.get(name)]
    return [(name, tables[name]) for name in [*known, *sorted(set(tables) - set(COLUMNS))] if tables[name]]


def _short_names(tables: Tables) -> dict[str, str]:
    """Return kernels' names as people say them, by the names that the page has, where they differ."""
    rows = [(row, "name") for row in tables.get("kernels", ())] + [
        (row, "kernel") for row in tables.get("operators", ())
    ]
    names = {str(row[column]) for row, column in rows[:_MOST_ROWS] if row.get(column)}
    return {printable(name): printable(short(name)) for name in sorted(names) if short(name) != name}


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> Json:
    shown = _fitting(name, rows[:_MOST_ROWS])
    present = {column for row in shown for column, value in row.items() if value not in _NOTHING or column in _TELL_0}
    wanted = [
        column for column in COLUMNS.get(name, ()) if column in present or (column == "place" and "file" in present)
    ]
    more = _MORE_COLUMNS.get(name, tuple(sorted(present - set(wanted) - _LEFT_OUT_OF_TABLES)))
    # What a row is, its figures, then where it is: in a narrow window the figures are in sight.
    wanted.sort(key=lambda column: column in _PLACES)
    columns = [*wanted, *(column for column in more if column in present and column not in wanted)]
    return {
        "id": name,
        "columns": columns,
        "rows": [[_cell(row, column) for column in columns] for row in shown],
        "marks": {str(row): mark for row, mark in reading_marks(name, shown).items()},
        "left_out": len(rows) - len(shown),
    }


def _fitting(name: str, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the first rows of a table: as many as its part of the page has room for."""
    more = _MORE_COLUMNS.get(name) or {column for row in rows for column in row}
    columns = {*COLUMNS.get(name, ()), *more}
    size = np.cumsum([sum(len(str(_cell(row, column))) + 3 for column in columns) for row in rows])
    return rows[: int(np.searchsorted(size, _MOST_CHARACTERS))] if len(rows) else rows


def _cell(row: Mapping[str, Any], column: str) -> object:
    if column == "place":
        return printable(place(row.get("file"), row.get("line"), row.get("function")))
    value = _bare(row.get(column))
    if isinstance(value, str):
        return printable(value)
    return value if isinstance(value, (int, float, bool)) or value is None else printable(str(value))


def _steps(view: StepsView) -> Json:
    return {
        "numbers": view.names,
        "phases": view.phases,
        "causes": view.causes,
        "ns": view.ns.tolist(),
        "total_ns": view.step_ns.tolist(),
    }


def _compared(comparison: Comparison) -> Json:
    """Return what changed between two reports, for the page's first view."""
    return {
        "sentence": {lang: spell(comparison.sentence, lang) for lang in LANGUAGES},
        "notes": {
            lang: " · ".join([comparison_notes(comparison, lang), *comparison_cautions(comparison, lang)])
            for lang in LANGUAGES
        },
        "ledger": [{**asdict(one), "name": one.name} for one in comparison.ledger],
        "operators": [{**asdict(one), "name": printable(one.name)} for one in comparison.operators[:_MOST_ROWS]],
        "findings": {
            kind: {lang: [printable(title) for title, _ in told_findings(comparison, kind, lang)] for lang in LANGUAGES}
            for kind in KINDS
        },
    }


def _ranks(ranks: Mapping[int, StepsView] | None) -> Json | None:
    """Return each rank's mean step by cause, or None for one rank."""
    if not ranks or len(ranks) < 2:
        return None
    means = {
        number: {cause: int(ns.mean()) for cause, ns in zip(view.causes, view.ns, strict=True)}
        for number, view in ranks.items()
    }
    causes = list(dict.fromkeys(cause for mean in means.values() for cause in mean))
    return {
        "numbers": list(means),
        "causes": causes,
        "ns": [[mean.get(cause, 0) for mean in means.values()] for cause in causes],
        "total_ns": [sum(mean.values()) for mean in means.values()],
    }


def _safe(value: object) -> object:
    """Return plain values with every text made safe to show."""
    if isinstance(value, Mapping):
        return {printable(str(key)): _safe(inner) for key, inner in value.items()}
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, (list, tuple)):
        return [_safe(inner) for inner in value]
    return _bare(value)


def _bare(value: Any) -> Any:  # noqa: ANN401 - a numpy scalar or any plain value
    """Return a numpy scalar as the plain number it is; anything else as it is."""
    return value.item() if hasattr(value, "item") else value
