"""``uncork analyze PATH…``: a verdict from recordings that exist."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.cli.output import Subparsers, add_output_options, emit, spare, wants_page

if TYPE_CHECKING:
    from uncork.pipeline import Progress


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser(
        "analyze",
        help="a verdict from recordings that exist",
        description="Read profiler traces, folders of ranks, memory snapshots or run folders, and say what is slow.",
        allow_abbrev=False,
    )
    verb.add_argument("paths", nargs="+", metavar="PATH", help="trace file, folder of ranks, snapshot, or run folder")
    add_output_options(verb)
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Analyse the recordings and print the report."""
    spare()
    from uncork.pipeline import analyze

    with progress_bar(arguments.quiet) as progress:
        report = analyze([Path(path) for path in arguments.paths], views=wants_page(arguments), progress=progress)
    emit(report, arguments, run=arguments.paths[0] if len(arguments.paths) == 1 else "")
    return 0


class progress_bar:  # noqa: N801 - reads as a statement: with progress_bar(...)
    """Shows how many files are done on a terminal's standard error; in pipes and with -q, nothing.

    Args:
        quiet: Show nothing.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet or not sys.stderr.isatty()

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
        task = self.bar.add_task("reading", total=None)
        return lambda done, total, name: self.bar.update(task, completed=done, total=total, description=name)

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if not self.quiet:
            self.bar.stop()
