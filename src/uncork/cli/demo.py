"""``uncork demo``: run a small slow job, diagnose it, run its fix, and compare the two."""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.cli.output import add_language, write
from uncork.errors import UncorkError

if TYPE_CHECKING:
    from uncork.cli.speech import Told, Verbs


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser("demo", help=told("help.demo"), description=told("help.demo.about"))
    verb.add_argument("-o", "--out", metavar="DIR", help=told("help.demo.out"))
    add_language(verb, told)
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Run the loop: collect, recognise, locate, verify."""
    from uncork.cli import main
    from uncork.locale import default_language, say

    lang = arguments.lang or default_language()
    base = Path(arguments.out) if arguments.out else Path(tempfile.mkdtemp(prefix="uncork-demo-"))
    runs = {name: base / name for name in ("slow", "fixed")}
    with resources.as_file(resources.files("uncork") / "demo") as scripts:
        for name, folder in runs.items():
            command = ["run", "--lang", lang, "-o", str(folder), str(scripts / f"{name}.py")]
            write("-", f"\n{say(lang, f'demo.{name}')}\n$ uncork {' '.join(command)}\n")
            sys.stdout.flush()
            code = main(command)
            if code:
                raise UncorkError("demo_failed", code=code)
    write("-", f"\n{say(lang, 'demo.compare')}\n$ uncork compare {runs['slow']} {runs['fixed']}\n")
    sys.stdout.flush()
    return main(["compare", str(runs["slow"]), str(runs["fixed"]), "--lang", lang])
