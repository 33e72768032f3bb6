"""``uncork open RUN``: show a report in the browser."""

from __future__ import annotations

import argparse
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.cli.output import add_language, write
from uncork.errors import UncorkError
from uncork.locale import default_language, say

if TYPE_CHECKING:
    from uncork.cli.speech import Told, Verbs

_ENDS = (".json.gz", ".json.zst", ".json", ".pickle", ".pkl", ".gz", ".zip", ".pstats", ".prof")


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser("open", help=told("help.open"), description=told("help.open.about"))
    verb.add_argument("run", metavar="RUN", help=told("help.open.run"))
    add_language(verb, told)
    verb.add_argument("--serve", action="store_true", help=told("help.open.serve"))
    verb.add_argument("--at", default="", metavar="PLACE", help=told("help.open.at"))
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Open the page, made first where there is none; print where it lies."""
    if arguments.serve:
        return serve(Path(arguments.run), arguments.lang, arguments.at)
    lang = arguments.lang or default_language()
    page, note = find_page(Path(arguments.run), arguments.lang)
    print(page, flush=True)
    if note:
        print(f"uncork: {say(lang, note, {'path': arguments.run})}", file=sys.stderr)
    if not webbrowser.open(_at(page.resolve().as_uri(), arguments.at)):
        print(f"uncork: {say(lang, 'note.no_browser', {'page': str(page)})}", file=sys.stderr)
    return 0


def _at(address: str, place: str) -> str:
    return f"{address}#{place}" if place else address


def serve(path: Path, lang: str | None, place: str = "") -> int:
    """Serve the page of a recording on this machine until interrupted."""
    from uncork import serving
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


def find_page(path: Path, lang: str | None) -> tuple[Path, str]:
    """Return the HTML page of a run, and what to say of a new file: the run folder's own, else beside the recording.

    A browser may have no view of temporary files, so these are the second choice.

    Raises:
        UncorkError: There is nothing at the path.
    """
    from uncork.recording import RunFolder

    if not path.exists():
        raise UncorkError("nothing_to_open", path=path, option="")
    if path.suffix == ".html":
        return path, ""
    is_run = RunFolder.is_one(path)
    if is_run and (path / RunFolder.REPORT_HTML).is_file() and lang is None:
        return path / RunFolder.REPORT_HTML, ""
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
        return page, "note.page_elsewhere"
    return page, "" if is_run else "note.page_beside"


def _stem(path: Path) -> str:
    """Return a recording's name without what it ends in: ``trace.json.gz`` → ``trace``."""
    name = path.resolve().name
    return next((name.removesuffix(end) for end in _ENDS if name.endswith(end)), name)
