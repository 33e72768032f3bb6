"""What verbs share: their options, and where their output goes."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.errors import UncorkError, UsageError
from uncork.locale import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from uncork.cli.speech import Told
    from uncork.render import Options
    from uncork.report import Report

_MOST_NAMED = 16
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's malloc.h: how much free memory it keeps at the end of its heap; from which size on a block is
asked for, and given back, by itself."""


def add_language(options: argparse._ActionsContainer, told: Told) -> None:
    """Add the option that says in which language."""
    # Left out where it is not given, so that one before the verb counts.
    options.add_argument("--lang", choices=LANGUAGES, default=argparse.SUPPRESS, help=told("help.lang"))


def add_output_options(verb: argparse.ArgumentParser, told: Told) -> None:
    """Add the options that say what to print, in which language, and where."""
    out = verb.add_argument_group(told("help.output"))
    out.add_argument("--json", metavar="FILE", help=told("help.json"))
    out.add_argument("--html", metavar="FILE", help=told("help.html"))
    out.add_argument("--markdown", metavar="FILE", help=told("help.markdown"))
    out.add_argument("--export", metavar="FORM=FILE", action="append", default=[], help=told("help.export"))
    add_language(out, told)
    out.add_argument("--top", type=rows, default=0, metavar="N", help=told("help.top"))
    out.add_argument("--sort", default="", metavar="KEY", help=told("help.sort"))
    out.add_argument("--rank", type=int, metavar="N", help=told("help.rank"))
    out.add_argument("-v", "--verbose", action="store_true", help=told("help.verbose"))
    out.add_argument("-q", "--quiet", action="store_true", help=told("help.quiet"))


def rows(text: str) -> int:
    """Return how many rows to show, from an option.

    Raises:
        UsageError: It is no number of rows.
    """
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise UsageError("no_rows", text=text)
    return count


def options(arguments: argparse.Namespace, run: str = "") -> Options:
    """Return what the reader asked for, the terminal's width and colours looked up."""
    from uncork.locale import default_language
    from uncork.render import Options

    return Options(
        lang=arguments.lang or default_language(),
        top=arguments.top,
        sort=arguments.sort,
        rank=arguments.rank,
        verbose=arguments.verbose,
        width=max(40, shutil.get_terminal_size((100, 24)).columns),
        color=use_color(),
        run=run,
    )


def use_color() -> bool:
    """Return whether standard output takes colours: a terminal, and neither NO_COLOR nor TERM=dumb."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def spare() -> None:
    """Spare an analysis what it does not need: threads for linear algebra, and giving memory back to the system.

    Without the second, glibc asks for the pages of each large array anew and gives them back: 3 % of an analysis.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy reads it when it begins
    import ctypes

    with contextlib.suppress(Exception):  # other systems' libraries have no such call
        for what, limit_bytes in ((_M_MMAP_THRESHOLD, 32 << 20), (_M_TRIM_THRESHOLD, 256 << 20)):
            ctypes.CDLL(None).mallopt(what, limit_bytes)


def wants_page(arguments: argparse.Namespace) -> bool:
    """Return whether a form was asked for that draws: it needs what no other does."""
    return bool(arguments.html or arguments.export)


def spare_inputs(arguments: argparse.Namespace, *inputs: str) -> None:
    """Refuse an output file that is an input: often the only copy of a recording that took hours.

    Args:
        arguments: The verb's.
        inputs: The recordings that it reads.

    Raises:
        UsageError: The report would take a recording's place.
    """
    named = [arguments.json, arguments.html, arguments.markdown]
    named += [text.partition("=")[2] for text in getattr(arguments, "export", ())]
    for target in filter(None, named):
        for file in (file for path in inputs for file in _read_from(path) if os.path.exists(target)):  # noqa: PTH110 - no path at all is no fault here
            with contextlib.suppress(OSError, ValueError):  # what is not there, or no path, is told by its reader
                if file.samefile(target):
                    raise UsageError("output_is_input", path=target)


def _read_from(path: str) -> Iterator[Path]:
    """Yield the files that are read where a path is given: a folder's recordings, a run folder's but its reports."""
    from uncork.readers import expand
    from uncork.recording import RunFolder

    yield Path(path)
    with contextlib.suppress(UncorkError):
        for file in expand([path]):
            if RunFolder.is_one(file):
                yield file / RunFolder.RECORDING
                yield from (part for rank in RunFolder(file).ranks() for part in rank.rglob("*"))
            else:
                yield file


def emit(report: Report, arguments: argparse.Namespace, run: str = "") -> None:
    """Write the report in every form that was asked for, and to the terminal unless told to be quiet."""
    from uncork.render import renderer

    chosen = options(arguments, run)
    known = report.run.get("ranks", ())
    if chosen.rank is not None and chosen.rank not in known:
        there = ", ".join(map(str, known)) if len(known) <= _MOST_NAMED else f"{known[0]} … {known[-1]}"
        raise UsageError("no_rank", rank=chosen.rank, known=there)
    wanted = [(form, getattr(arguments, form)) for form in ("json", "html", "markdown")]
    wanted += [_export(text) for text in arguments.export]
    for form, target in wanted:
        if target:
            write(target, renderer(form)(report, chosen))
    spoken = any(target == "-" for _, target in wanted)
    if not spoken and not arguments.quiet:
        write("-", renderer("terminal")(report, chosen))


def _export(text: str) -> tuple[str, str]:
    """Return form and file of ``csv=table.csv``."""
    from uncork.render import renderers

    name, _, target = text.partition("=")
    form = name.replace("-", "_")
    if form not in renderers() or not target:
        forms = ", ".join(form.replace("_", "-") for form in renderers() if form != "terminal")
        raise UsageError("no_export", text=text, known=forms)
    return form, target


def write(target: str, text: str) -> None:
    """Write text to a file, whole or not at all; ``-`` is standard output; a device, pipe or link is written through.

    Raises:
        UncorkError: The file cannot be written.
    """
    if target == "-":
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "uncork-escape").decode(encoding))
        return
    path = Path(target)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_text(text, "utf-8", "uncork-escape")
            return
        draft.write_text(text, "utf-8", "uncork-escape")
        draft.replace(path)
    except OSError as fault:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise UncorkError("cannot_write", path=target, reason=fault.strerror) from None


def _escape(fault: UnicodeError) -> tuple[str, int]:
    """Return what a bare C locale can spell in place of what it cannot, so that JSON stays JSON."""
    if not isinstance(fault, UnicodeEncodeError):
        raise fault
    return json.dumps(fault.object[fault.start : fault.end])[1:-1], fault.end


codecs.register_error("uncork-escape", _escape)
