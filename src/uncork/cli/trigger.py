"""``uncork trigger PID``: start recording a program that was started with ``uncork run --arm``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from uncork.cli.output import add_language

if TYPE_CHECKING:
    from uncork.cli.speech import Told, Verbs


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser("trigger", help=told("help.trigger"), description=told("help.trigger.about"))
    verb.add_argument("pid", type=int, metavar="PID", help=told("help.trigger.pid"))
    add_language(verb, told)
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Send the signal."""
    from uncork.capture import trigger
    from uncork.locale import default_language, say

    trigger(arguments.pid)
    print(f"uncork: {say(arguments.lang or default_language(), 'note.triggered', {'pid': str(arguments.pid)})}")
    return 0
