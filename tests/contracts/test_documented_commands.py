"""Commands in the documentation are commands that exist."""

import re
import shlex
from pathlib import Path

import pytest

from uncork.cli import parser
from uncork.rules import rules

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/uncork/rules/*/*.md")])
TYPED = re.compile(r"^\$ (?:\.venv/bin/)?uncork (.+?)(?:\s{2,}#.*| > \S+)?$", re.MULTILINE)
VERB = re.compile(r"`uncork (\w+)")
RULE = re.compile(r"`uncork explain ([a-z-]+)`")
MAKE = re.compile(r"^\$ make (\w+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_a_page_can_be_typed(page: Path):
    """Each command line after a `$` is accepted; each verb, rule and make target that is named exists."""
    text = page.read_text("utf-8")
    for line in TYPED.findall(text):
        parser().parse_args(shlex.split(line))
    verbs = next(action for action in parser()._actions if action.dest == "verb").choices
    assert set(VERB.findall(text)) <= set(verbs)
    assert set(RULE.findall(text)) <= set(rules())
    targets = (ROOT / "Makefile").read_text("utf-8")
    assert [target for target in MAKE.findall(text) if f"\n{target}:" not in targets] == []


def test_the_pages_have_commands():
    """The search finds what it looks for."""
    assert len([line for page in PAGES for line in TYPED.findall(page.read_text("utf-8"))]) > 10
