"""The verbs of the command line: one file each; nothing but arguments and printing."""

import argparse
import atexit
import errno
import gc
import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from uncork import __version__
from uncork.cli.output import add_language
from uncork.cli.speech import Parser, asked_language, speak
from uncork.errors import UncorkError, strict
from uncork.locale import default_language, say

VERBS = ("run", "analyze", "compare", "explain", "rules", "open", "demo", "trigger")


def parser(verbs: Sequence[str] = VERBS, lang: str = "en") -> Parser:
    """Return the parser of the command line.

    Args:
        verbs: Those that it knows: all, or the one that was asked for, which spares loading the others.
        lang: The language of its helps and complaints.
    """
    told = speak(lang)
    top = Parser(prog="uncork", description=told("help.about"), epilog=told("help.start"))
    top.add_argument("--version", action="version", version=f"uncork {__version__}", help=told("help.version"))
    add_language(top, told)
    subparsers = top.add_subparsers(dest="verb", metavar="VERB")
    for verb in verbs:
        import_module(f"uncork.cli.{verb}").add(subparsers, told)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 analysed, 1 a gate failed, 2 unusable input; of ``run``, the program's own."""
    arguments = argparse.Namespace(lang=None)
    _open_streams()
    # Python searches for cycles after every 700 objects, and through all when it ends: a tenth of a small analysis.
    gc.set_threshold(200_000)
    atexit.register(gc.freeze)
    try:
        words = sys.argv[1:] if argv is None else argv
        verb = next((word for word in words if not word.startswith("-")), "")
        verbs = [verb] if verb in VERBS else VERBS
        arguments.lang = asked_language(words, parser(verbs))
        taken = parser(verbs, language(arguments))
        if taken.parse_args(words, arguments).verb is None:
            taken.exit(2, taken.format_help())
        code: int = arguments.act(arguments)
        sys.stdout.flush()
    except UncorkError as fault:
        print(f"uncork: {fault.told(language(arguments))}", file=sys.stderr)
        return fault.exit_code
    except BrokenPipeError:
        fall_silent()
        return 0
    except Exception as fault:
        if isinstance(fault, OSError) and fault.errno == errno.ENOSPC:
            fall_silent()
            told = UncorkError("cannot_write", path=fault.filename or "<stdout>", reason=fault.strerror)
            print(f"uncork: {told.told(language(arguments))}", file=sys.stderr)
            return 2
        if strict():
            raise
        print(f"uncork: {fault_line(fault, language(arguments))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"uncork: {say(language(arguments), 'error.interrupted')}", file=sys.stderr)
        return 130
    return code


def fall_silent() -> None:
    """Send what is still to be said nowhere: the reader of our output has gone (`| head`), or its disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes the rest when it ends


def _open_streams() -> None:
    """Let nothing that is said fail: streams may know ASCII alone, or be closed.

    Closed ones are given to the null device: a file opened in their place would get what programs say.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115 - for as long as the process lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="uncork-escape")


def language(arguments: argparse.Namespace) -> str:
    """Return the language that was asked for, else the environment's."""
    return arguments.lang or default_language()


def fault_line(fault: Exception, lang: str) -> str:
    """Return one line about a fault of our own: what, where, and what to do about it."""
    frames = traceback.extract_tb(fault.__traceback__)
    where = f"{frames[-1].name} in {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"  # noqa: PTH119
    what = " ".join(f"{type(fault).__name__}: {fault}".split())
    return say(lang, "error.fault", {"what": what, "where": where})
