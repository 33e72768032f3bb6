"""``uncork explain RULE``: the manual page of a rule."""

from __future__ import annotations

import argparse
import difflib
import re
from typing import TYPE_CHECKING

from uncork.cli.output import add_language, use_color, write
from uncork.errors import UsageError

if TYPE_CHECKING:
    from uncork.cli.speech import Told, Verbs

# The points of a piece of advice, which have the same names on the pages of all languages.
_POINT = re.compile(r"^- (effort|risk|check): ", re.MULTILINE)
# The name of a piece of advice, which programs use and people need not read.
_NAME = re.compile(r"^### [a-z0-9-]+: ", re.MULTILINE)


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser("explain", help=told("help.explain"), description=told("help.explain.about"))
    verb.add_argument("rule", metavar="RULE", help=told("help.explain.rule"))
    add_language(verb, told)
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Print the page: laid out on a terminal, as Markdown in a pipe."""
    from uncork.locale import default_language, say
    from uncork.rules import rules
    from uncork.rules.page import page

    rule_id = arguments.rule.replace("_", "-")
    rule = rules().get(rule_id)
    if rule is None:
        near = difflib.get_close_matches(rule_id, rules(), n=3)
        if near:
            raise UsageError("no_rule_but", rule=arguments.rule, near=" / ".join(near))
        raise UsageError("no_rule", rule=arguments.rule)
    lang = arguments.lang or default_language()
    manual = page(rule.folder, rule.id, lang)
    body = _POINT.sub(lambda found: f"- {say(lang, f'page.advice.{found[1]}')} ".replace("： ", "："), manual.manual)
    text = f"# {manual.name}\n\n{_NAME.sub('### ', body)}"
    if use_color():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        write("-", text)
    return 0
