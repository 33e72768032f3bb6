"""``uncork analyze PATH…``: a verdict from recordings that exist."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.cli.output import add_output_options, emit, spare, spare_inputs, wants_page
from uncork.locale import default_language, say

if TYPE_CHECKING:
    from uncork.cli.speech import Told, Verbs
    from uncork.pipeline import Progress


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser("analyze", help=told("help.analyze"), description=told("help.analyze.about"))
    verb.add_argument("paths", nargs="+", metavar="PATH", help=told("help.analyze.paths"))
    add_output_options(verb, told)
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Analyse the recordings and print the report."""
    spare()
    spare_inputs(arguments, *arguments.paths)
    from uncork.pipeline import analyze

    with progress_bar(arguments) as progress:
        report = analyze([Path(path) for path in arguments.paths], views=wants_page(arguments), progress=progress)
    can_open = len(arguments.paths) == 1 and Path(arguments.paths[0]).exists()  # one path, and no pattern
    emit(report, arguments, run=arguments.paths[0] if can_open else "")
    return 0


class progress_bar:  # noqa: N801 - reads as a statement: with progress_bar(...)
    """Shows how many files are done on a terminal's standard error; in pipes and with -q, nothing.

    Args:
        arguments: The verb's: in which language, or whether to be quiet.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.lang = arguments.lang or default_language()
        self.quiet = arguments.quiet or not sys.stderr.isatty()

    def __enter__(self) -> Progress | None:
        """Return the function that the work calls as it goes on."""
        if self.quiet:
            return None
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self.bar.start()
        task = self.bar.add_task(say(self.lang, "note.reading"), total=None)
        return lambda done, total, name: self.bar.update(task, completed=done, total=total, description=name)

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if not self.quiet:
            self.bar.stop()
