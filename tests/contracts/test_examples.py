"""Every rule has an example that provokes it, or a reason why none does; the lists of examples agree with the tests."""

import re
from pathlib import Path

import pytest

from tests.pairs import test_examples, test_rule_examples
from uncork.rules import rules

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIR = re.compile(r"^\| \[`(\w+)`\]\(\1\) \|.*\| `([a-z0-9-]+)` \|$", re.MULTILINE)
REASON = re.compile(r"^\| ((?:`[a-z0-9-]+` ?)+)\| .+ \|$", re.MULTILINE)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_every_rule_has_an_example_or_a_reason_why_not(name: str) -> None:
    """Not both, and no rule that does not exist."""
    text = (EXAMPLES / name).read_text("utf-8")
    provoked = {rule for _, rule in PAIR.findall(text)}
    excused = [rule for row in REASON.findall(text) for rule in re.findall(r"`([^`]+)`", row)]
    assert sorted([*provoked, *excused]) == sorted(rules())


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_list_of_examples_is_that_of_the_tests(name: str) -> None:
    """Folder by folder, with the rule that a test holds it to."""
    listed = dict(PAIR.findall((EXAMPLES / name).read_text("utf-8")))
    held = {
        example: pair.rule
        for pairs in (test_examples.PAIRS, test_rule_examples.PAIRS)
        for example, pair in pairs.items()
    }
    folders = {path.name for path in EXAMPLES.iterdir() if (path / "slow.py").is_file()}
    assert listed == held
    assert set(listed) == folders
