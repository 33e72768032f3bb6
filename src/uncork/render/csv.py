"""CSV: the statistics tables, one below another, for spreadsheets and scripts."""

import csv
import io

from uncork.render import Options
from uncork.render.tables import COLUMNS, top_rows
from uncork.report import Report

_ALL_ROWS = 1_000_000


def render(report: Report, options: Options) -> str:
    """Return every table as CSV, its name in the first column; values are plain, with the unit in the column's name."""
    rows = [
        {"table": name, **row}
        for name in COLUMNS
        for row in top_rows(report, name, options.sort, options.top or _ALL_ROWS, options.rank)
    ]
    columns = list(
        dict.fromkeys(key for row in rows for key, value in row.items() if not isinstance(value, (list, dict)))
    )
    out = io.StringIO()
    writer = csv.DictWriter(out, columns or ["table"], extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _harmless(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def _harmless(value: object) -> object:
    """Return a value that no spreadsheet takes for a formula: names of operators may hold anything."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
