"""``uncork open RUN``: show a report in the browser."""

from __future__ import annotations

import argparse
import sys
import webbrowser
from pathlib import Path

from uncork.cli.output import Subparsers, add_language, write
from uncork.errors import UncorkError


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser(
        "open",
        help="show a report in the browser",
        description="Show the HTML report of a run folder, or of any recording, in the browser.",
    )
    verb.add_argument("run", metavar="RUN", help="run folder, recording, or HTML report")
    add_language(verb)
    verb.add_argument("--serve", action="store_true", help="for recordings too large for one file: serve it, here only")
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Open the page, made first where there is none; print where it lies."""
    if arguments.serve:
        return serve(Path(arguments.run), arguments.lang)
    page = find_page(Path(arguments.run), arguments.lang)
    print(page)
    if not webbrowser.open(page.resolve().as_uri()):
        print(f"uncork: no browser here; copy this file to a machine that has one: {page}", file=sys.stderr)
    return 0


def serve(path: Path, lang: str | None) -> int:
    """Serve the page of a recording on this machine until interrupted."""
    from uncork import serving
    from uncork.locale import default_language
    from uncork.render import Options

    if not path.exists():
        raise UncorkError(f"There is no {path}.", "Type: uncork open uncork-runs/NAME --serve")
    served = serving.Served(serving.read(path), Options(lang=lang or default_language()))
    with serving.server(served) as running:
        address = serving.address(running, served)
        print(address, flush=True)
        webbrowser.open(address)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def find_page(path: Path, lang: str | None) -> Path:
    """Return the HTML page of a run, written beside its recording where there is none yet.

    Raises:
        UncorkError: There is nothing at the path.
    """
    from uncork.recording import RunFolder

    if not path.exists():
        raise UncorkError(f"There is no {path}.", "Type: uncork open uncork-runs/NAME")
    if path.suffix == ".html":
        return path
    if path.is_dir() and (path / RunFolder.REPORT_HTML).is_file() and lang is None:
        return path / RunFolder.REPORT_HTML
    from uncork.locale import default_language
    from uncork.pipeline import analyze
    from uncork.render import Options, renderers

    page = path / RunFolder.REPORT_HTML if path.is_dir() else Path(path.name).with_suffix(".html")
    report = analyze([path], views=True)
    write(str(page), renderers()["html"](report, Options(lang=lang or default_language())))
    return page
