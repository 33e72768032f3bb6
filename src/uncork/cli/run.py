"""``uncork run script.py``: run an unmodified program, record it, and say what is slow."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.cli.analyze import progress_bar
from uncork.cli.output import add_output_options, emit
from uncork.errors import UncorkError, UsageError, strict

if TYPE_CHECKING:
    from collections.abc import Callable

    from uncork.capture import CaptureResult
    from uncork.cli.speech import Told, Verbs


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser(
        "run",
        help=told("help.run"),
        usage=told("help.run.usage"),
        description=told("help.run.about"),
    )
    verb.add_argument("-o", "--out", metavar="DIR", help=told("help.run.out"))
    verb.add_argument("--steps", type=_count(1), metavar="N", help=told("help.run.steps"))
    verb.add_argument("--skip", type=_count(0), metavar="N", help=told("help.run.skip"))
    verb.add_argument("--for", dest="seconds", metavar="TIME", help=told("help.run.seconds"))
    verb.add_argument("--no-stack", action="store_true", help=told("help.run.no_stack"))
    verb.add_argument("--then", choices=("go-on", "exit"), default="go-on", help=told("help.run.then"))
    verb.add_argument("--arm", action="store_true", help=told("help.run.arm"))
    add_output_options(verb, told)
    verb.add_argument("-m", dest="module", action="store_true", help=told("help.run.module"))
    verb.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Run the program, analyse what was recorded, print the report; return the program's exit code."""
    from uncork.capture import CaptureOptions, end_as, record

    if not any(arguments.program[:1]):
        raise UncorkError("no_program")
    _refuse_removed_folder()
    folder = Path(arguments.out) if arguments.out else _new_folder(arguments.program)
    done = record(
        arguments.program,
        module=arguments.module,
        into=folder,
        options=CaptureOptions(
            steps=arguments.steps,
            skip=arguments.skip,
            seconds=_seconds(arguments.seconds),
            stacks=not arguments.no_stack,
            then_exit=arguments.then == "exit",
            arm=arguments.arm,
        ),
        lang=arguments.lang,
    )
    if done.leads:
        _report(done, arguments)
    if done.signal is not None:
        end_as(done)
    return done.exit_code


def _refuse_removed_folder() -> None:
    """Refuse to start a program in a folder that is gone: torch's optimizers ask for it too, and fail."""
    try:
        os.getcwd()  # noqa: PTH109 - asks the system, and nothing else
    except OSError as fault:
        raise UsageError("no_current_folder", reason=fault.strerror) from None


_ENDED_EARLY = frozenset({"torch-not-imported", "too-short", "no-steps"})
"""What a program that fails at once leaves: its own message says why, and marking its steps would not help."""


def _report(done: CaptureResult, arguments: argparse.Namespace) -> None:
    """Show the report of a recording, or one line that says why there is none: the exit code stays the program's."""
    from uncork.cli import fall_silent, fault_line, language
    from uncork.locale import default_language, say

    if done.problem:
        why = "failed-early" if done.exit_code and done.problem in _ENDED_EARLY else done.problem
        why = say(arguments.lang or default_language(), f"note.{why}", {"exit_code": done.exit_code})
        print(f"uncork: {why}{f' ({done.where})' if done.where else ''}", file=sys.stderr)
        return
    try:
        report_on(done.folder, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        fall_silent()
    except UncorkError as fault:
        print(f"uncork: {fault.told(language(arguments))}", file=sys.stderr)
    except Exception as fault:
        if strict():
            raise
        print(f"uncork: {fault_line(fault, language(arguments))}", file=sys.stderr)


def report_on(folder: Path, arguments: argparse.Namespace) -> None:
    """Analyse a run folder, keep its report in it as JSON and HTML, and print it."""
    from uncork.pipeline import analyze
    from uncork.recording import RunFolder
    from uncork.render import renderers

    from .output import options, write

    with progress_bar(arguments) as progress:
        report = analyze([folder], views=True, progress=progress)
    chosen = options(arguments, str(folder))
    write(str(folder / RunFolder.REPORT_JSON), renderers()["json"](report, chosen))
    write(str(folder / RunFolder.REPORT_HTML), renderers()["html"](report, chosen))
    emit(report, arguments, run=str(folder))


def _new_folder(program: list[str]) -> Path:
    """Return a folder name that says what ran and when, and is not taken; the ranks of a launcher share one."""
    from uncork.capture.files import not_taken
    from uncork.capture.job import job_of

    name = next((Path(word).stem for word in program if word.endswith(".py")), Path(program[0]).stem) or "run"
    job = job_of(program)
    if job.launched:
        return Path("uncork-runs") / f"{name}-{job.name}"
    return not_taken(Path("uncork-runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")


def _count(least: int) -> Callable[[str], int]:
    """Return what reads a number of steps."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or int(text) < least:
            raise UsageError("no_steps", text=text, least=least)
        return int(text)

    return read


def _seconds(text: str | None) -> float | None:
    """Return a time such as ``60s``, ``5m`` or ``1h`` in seconds."""
    if text is None:
        return None
    factor = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 1)
    try:
        value = float(text.rstrip("smh")) * factor
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise UncorkError("no_time", text=text)
    return value
