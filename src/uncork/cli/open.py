"""``uncork open RUN``: show a report in the browser."""

from __future__ import annotations

import argparse
import sys
import tempfile
import webbrowser
from pathlib import Path

from uncork.cli.output import Subparsers, add_language, write
from uncork.errors import UncorkError

_ENDS = (".json.gz", ".json.zst", ".json", ".pickle", ".pkl", ".gz", ".zip", ".pstats", ".prof")


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
    verb.add_argument("--at", default="", metavar="PLACE", help='a place in the page, as its "copy command" gives it')
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Open the page, made first where there is none; print where it lies."""
    if arguments.serve:
        return serve(Path(arguments.run), arguments.lang, arguments.at)
    page = find_page(Path(arguments.run), arguments.lang)
    print(page)
    if not webbrowser.open(_at(page.resolve().as_uri(), arguments.at)):
        print(f"uncork: no browser here; copy this file to a machine that has one: {page}", file=sys.stderr)
    return 0


def _at(address: str, place: str) -> str:
    return f"{address}#{place}" if place else address


def serve(path: Path, lang: str | None, place: str = "") -> int:
    """Serve the page of a recording on this machine until interrupted."""
    from uncork import serving
    from uncork.locale import default_language
    from uncork.render import Options

    if not path.exists():
        raise UncorkError("nothing_to_open", path=path, option=" --serve")
    served = serving.Served(serving.read(path), Options(lang=lang or default_language()))
    with serving.server(served) as running:
        address = _at(serving.address(running, served), place)
        print(address, flush=True)
        webbrowser.open(address)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def find_page(path: Path, lang: str | None) -> Path:
    """Return the HTML page of a run: the run folder's own, else written beside the recording.

    Raises:
        UncorkError: There is nothing at the path.
    """
    from uncork.recording import RunFolder

    if not path.exists():
        raise UncorkError("nothing_to_open", path=path, option="")
    if path.suffix == ".html":
        return path
    is_run = RunFolder.is_one(path)
    if is_run and (path / RunFolder.REPORT_HTML).is_file() and lang is None:
        return path / RunFolder.REPORT_HTML
    from uncork.locale import default_language
    from uncork.pipeline import analyze
    from uncork.render import Options, renderers

    report = analyze([path], views=True)
    text = renderers()["html"](report, Options(lang=lang or default_language(), run=str(path)))
    page = path / RunFolder.REPORT_HTML if is_run else path.parent / f"{_stem(path)}.uncork.html"
    try:
        write(str(page), text)
    except UncorkError:  # a folder that may only be read
        page = Path(tempfile.mkdtemp(prefix="uncork-")) / page.name
        write(str(page), text)
    return page


def _stem(path: Path) -> str:
    """Return a recording's name without what it ends in: ``trace.json.gz`` → ``trace``."""
    name = path.resolve().name
    return next((name.removesuffix(end) for end in _ENDS if name.endswith(end)), name)
