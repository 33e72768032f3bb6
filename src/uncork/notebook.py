"""Notebook: a report that shows itself, and the cell magic ``%%uncork``."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from uncork.compare import Comparison, compare
from uncork.locale import default_language
from uncork.render import Options, renderers
from uncork.report import Json, Report, to_json

_FRAME = (
    '<iframe style="width:100%;height:{height}px;border:0" sandbox="allow-scripts allow-downloads" '
    'srcdoc="{page}"></iframe>'
)
_HEIGHT = 720


class Shown:
    """A report that a notebook shows as a page and a console as text.

    Args:
        report: The report.
        lang: ``en`` or ``zh``; the locale's by default.
    """

    def __init__(self, report: Report, lang: str | None = None) -> None:
        self.report = report
        self.options = Options(lang=lang or default_language())

    def __repr__(self) -> str:
        """Return the report as text."""
        return renderers()["terminal"](self.report, self.options)

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        """Return what Jupyter shows: the page in a frame of its own, so that neither disturbs the other."""
        page = html.escape(renderers()["html"](self.report, self.options), quote=True)
        return {"text/plain": repr(self), "text/html": _FRAME.format(height=_HEIGHT, page=page)}

    def since(self, before: Shown) -> Comparison:
        """Return what changed from an earlier report to this one."""
        return compare(before.report, self.report)

    def json(self) -> Json:
        """Return the report as plain values (schema 1)."""
        return to_json(self.report, self.options.lang)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report to a file, its form by the suffix (.html, .json, .md, .csv), and return the path.

        Raises:
            ValueError: The suffix is none of these.
        """
        target = Path(path)
        form = {".html": "html", ".json": "json", ".md": "markdown", ".csv": "csv"}.get(target.suffix)
        if form is None:
            raise ValueError(f"{target.suffix or 'no suffix'}: name a file that ends in .html, .json, .md or .csv")
        target.write_text(renderers()[form](self.report, self.options), "utf-8")
        return target


def register(shell: Any) -> None:  # noqa: ANN401 - IPython's shell; IPython is not our dependency
    """Add the magic to an IPython shell: ``%%uncork`` runs a cell under the recorder and shows the report."""

    def uncork(line: str, cell: str) -> Shown:
        """Run the cell, record it, and return its report; the line may name a folder to keep the run in."""
        from uncork.capture.api import record
        from uncork.pipeline import analyze

        with record(line.strip() or None) as session:
            shell.run_cell(cell).raise_error()
        return Shown(analyze([session.folder], views=True))

    magic: Callable[..., None] = shell.register_magic_function
    magic(uncork, magic_kind="cell", magic_name="uncork")
