"""The command line is a public interface: what it takes is written down, and a change of it shows in the diff.

After a change that is meant: ``python tests/contracts/test_cli_frozen.py``, and a line in the changelog.
"""

import argparse
import json
from pathlib import Path

from uncork.cli import parser

FROZEN = Path(__file__).with_name("cli_frozen.json")


def interface(one: argparse.ArgumentParser) -> dict[str, object]:
    """Return what a parser takes: options and arguments with their choices, verbs with theirs."""
    taken: dict[str, object] = {}
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            taken |= {verb: interface(below) for verb, below in action.choices.items()}
        elif not isinstance(action, argparse._HelpAction):
            name = " ".join(action.option_strings) or action.dest
            taken[name] = "|".join(action.choices or ()) or {None: "one", 0: "flag"}.get(action.nargs, action.nargs)
    return taken


def test_the_command_line_is_as_it_was():
    """Verbs, options, arguments and choices are the frozen ones."""
    assert interface(parser()) == json.loads(FROZEN.read_text("utf-8"))


def test_every_verb_and_option_says_what_it_does():
    """No line of a help is empty."""
    verbs = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    silent = [
        f"{name} {action.option_strings or action.dest}"
        for name, verb in verbs.choices.items()
        for action in verb._actions
        if not action.help
    ]
    assert not silent


if __name__ == "__main__":
    FROZEN.write_text(json.dumps(interface(parser()), indent=1) + "\n", "utf-8")
