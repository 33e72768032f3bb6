"""``uncork rules``: every rule in a line."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from uncork.cli.output import add_language

if TYPE_CHECKING:
    from uncork.cli.speech import Told, Verbs


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser("rules", help=told("help.rules"), description=told("help.rules.about"))
    add_language(verb, told)
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Print the rules by class."""
    from uncork.locale import default_language, say
    from uncork.rules import rules
    from uncork.rules.page import page

    lang = arguments.lang or default_language()
    by_class: dict[str, list[tuple[str, str]]] = {}
    for rule in rules().values():
        name = page(rule.folder, rule.id, lang).name
        by_class.setdefault(rule.folder.name, []).append((rule.id, name))
    width = max((len(rule_id) for rows in by_class.values() for rule_id, _ in rows), default=0)
    for folder, rows in by_class.items():
        print(say(lang, f"class.{folder}"))
        for rule_id, name in rows:
            print(f"  {rule_id:{width}}  {name}")
    return 0
