"""One file per form: ``render(report, options) -> str``. A file here needs no registration."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Protocol

from uncork.records import dataclass
from uncork.report import Report


@dataclass(frozen=True)
class Options:
    """What the reader asked for; each form uses what applies to it.

    Args:
        lang: ``en`` or ``zh``.
        top: Rows per table; 0 means the form's own choice.
        sort: Column that tables are sorted by; empty means the table's own order.
        rank: Rank whose rows are shown, None for all.
        verbose: Show evidence, tables and what was not assessed as well.
        width: Columns of the terminal.
        color: Whether the terminal shows colours.
        run: What to type to see this report again, or empty.
    """

    lang: str = "en"
    top: int = 0
    sort: str = ""
    rank: int | None = None
    verbose: bool = False
    width: int = 100
    color: bool = False
    run: str = ""


class Render(Protocol):
    """Turns a report into text."""

    def __call__(self, report: Report, options: Options) -> str:
        """Return the report in this form."""
        ...


def renderer(form: str) -> Render:
    """Return the renderer of a form that is there."""
    found: Render = importlib.import_module(f"{__name__}.{form}").render
    return found


@cache
def renderers() -> Mapping[str, Render]:
    """Return every form by name: the files of this folder that have a ``render``."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        form = importlib.import_module(f"{__name__}.{module.name}")
        if hasattr(form, "render"):
            found[module.name] = form.render
    return found
