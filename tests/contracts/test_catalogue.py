"""Everything people read exists in both languages with the same placeholders, and nothing that is used is missing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import uncork
from uncork.locale import LANGUAGES, catalogue
from uncork.rules import rules
from uncork.rules.page import page

SOURCE = Path(uncork.__file__).parent
PLACEHOLDER = re.compile(r"\{(\w+)\}")
KEY = re.compile(r"[a-z]+(\.[a-z_]+)+")


def literal_keys() -> Iterator[tuple[str, str]]:
    """Yield each text that the code asks the catalogue for by a literal key, and where."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "say":
                for argument in node.args[:2]:
                    if isinstance(argument, ast.Constant) and KEY.fullmatch(str(argument.value)):
                        yield str(argument.value), f"{path.name}:{node.lineno}"


def test_both_languages_have_the_same_keys():
    """A text that exists in one language only would show as its key in the other."""
    assert set(catalogue("en")) == set(catalogue("zh"))


def test_both_languages_fill_the_same_placeholders():
    """A placeholder that one language forgets loses a figure; one it invents stays a brace."""
    differ = {
        key: (sorted(set(PLACEHOLDER.findall(text))), sorted(set(PLACEHOLDER.findall(catalogue("zh").get(key, "")))))
        for key, text in catalogue("en").items()
        if set(PLACEHOLDER.findall(text)) != set(PLACEHOLDER.findall(catalogue("zh").get(key, "")))
    }
    assert not differ


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_text_is_empty(lang: str):
    """An empty text is a hole in a sentence."""
    assert [key for key, text in catalogue(lang).items() if not text.strip()] == []


def test_no_key_is_used_that_is_missing():
    """Keys that the code spells out are in the catalogue."""
    used = list(literal_keys())
    assert used, "the search finds the calls it looks for"
    assert [(key, where) for key, where in used if key not in catalogue("en")] == []


@pytest.mark.parametrize("rule_id", list(rules()))
def test_every_rule_has_its_pages(rule_id: str):
    """An English and a Chinese page with the same advice, placeholders and snippets' presence."""
    folder = rules()[rule_id].folder
    stem = rule_id.replace("-", "_")
    assert (folder / f"{stem}.md").is_file()
    assert (folder / f"{stem}.zh.md").is_file()
    english, chinese = (page(folder, rule_id, lang) for lang in LANGUAGES)
    assert list(english.advice) == list(chinese.advice)
    assert english.advice, "a page says what to do"
    for field in ("title", "because"):
        wanted = set(PLACEHOLDER.findall(getattr(english, field)))
        assert set(PLACEHOLDER.findall(getattr(chinese, field))) == wanted, field
    for name, advice in english.advice.items():
        other = chinese.advice[name]
        for field in ("text", "snippet"):
            wanted = set(PLACEHOLDER.findall(getattr(advice, field)))
            assert set(PLACEHOLDER.findall(getattr(other, field))) == wanted, (name, field)
        assert all(getattr(one, field) for one in (advice, other) for field in ("effort", "risk", "check")), name
