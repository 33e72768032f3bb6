"""Notebook: a report that shows itself, and the cell magic ``%%uncork``."""

from __future__ import annotations

import contextlib
import html
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from uncork.compare import Comparison, compare
from uncork.errors import UncorkError
from uncork.locale import default_language
from uncork.records import dataclass
from uncork.render import Options, renderers
from uncork.render.comparison import render_comparison
from uncork.render.comparison_markdown import render_comparison_markdown
from uncork.render.html import render_compared
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
        """Return what Jupyter shows: the page, and what stands in for it where there is none."""
        return {"text/plain": repr(self), "text/html": _framed(renderers()["html"](self.report, self.options))}

    def since(self, before: Shown) -> ShownComparison:
        """Return what changed from an earlier report to this one."""
        changes = vars(compare(before.report, self.report))
        return ShownComparison(**changes, report=self.report, options=self.options)

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


@dataclass(frozen=True)
class ShownComparison(Comparison):
    """A comparison that a notebook shows as a page and a console as text.

    Args:
        report: The later report.
        options: How it is shown.
    """

    report: Report
    options: Options

    def __repr__(self) -> str:
        """Return the comparison as text."""
        return render_comparison(self, self.options.lang, width=self.options.width)

    def _repr_mimebundle_(self, **_: object) -> Mapping[str, str]:
        """Return what Jupyter shows: the later report's page with what changed, the same as Markdown, as text."""
        return {
            "text/plain": repr(self),
            "text/markdown": render_comparison_markdown(self, self.options.lang),
            "text/html": _framed(render_compared(self.report, self, self.options)),
        }


def _framed(page: str) -> str:
    """Return a page in a frame of its own, so that neither it nor the notebook disturbs the other."""
    return _FRAME.format(height=_HEIGHT, page=html.escape(page, quote=True))


@contextlib.contextmanager
def _told_once(shell: Any) -> Iterator[None]:  # noqa: ANN401 - IPython's shell
    """Keep an IPython shell from showing an error that will be raised once more."""
    shell._showtraceback = lambda *_: None  # noqa: SLF001 - all ways of showing one go through it
    try:
        yield
    finally:
        del shell._showtraceback  # noqa: SLF001 - its class has one


def register(shell: Any) -> None:  # noqa: ANN401 - IPython's shell; IPython is not our dependency
    """Add the magic to an IPython shell: ``%%uncork`` runs a cell under the recorder and shows the report."""

    def uncork(line: str, cell: str) -> Shown | None:
        """Run the cell, record it, and return its report; the line may name a folder to keep the run in."""
        from uncork.capture.api import record
        from uncork.pipeline import analyze

        __tracebackhide__ = True  # IPython's word for a frame that tells nothing
        with record(line.strip() or None) as session, _told_once(shell):
            ran = shell.run_cell(cell)
        if ran.error_before_exec:  # below lies IPython's compiler alone
            raise ran.error_before_exec.with_traceback(None)
        if ran.error_in_exec:
            raise ran.error_in_exec  # the cell around it fails too, and shows it
        try:
            return Shown(analyze([session.folder], views=True))
        except UncorkError as fault:  # the cell itself ran: no reason to stop the notebook
            print(f"uncork: {fault.told(default_language())}", file=sys.stderr)  # noqa: T201 - a cell has no other stream
            return None

    magic: Callable[..., None] = shell.register_magic_function
    magic(uncork, magic_kind="cell", magic_name="uncork")
