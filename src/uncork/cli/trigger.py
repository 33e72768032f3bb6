"""``uncork trigger PID``: start recording a program that was started with ``uncork run --arm``."""

from __future__ import annotations

import argparse

from uncork.cli.output import Subparsers


def add(verbs: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser(
        "trigger",
        help="start recording a program that waits armed",
        description="Start recording a program that was started with `uncork run --arm`.",
    )
    verb.add_argument("pid", type=int, metavar="PID", help="process id that uncork run --arm printed")
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Send the signal."""
    from uncork.capture import trigger

    trigger(arguments.pid)
    print(f"uncork: process {arguments.pid} records from its next step on")
    return 0
