"""Everything people read exists in both languages with the same placeholders, and nothing that is used is missing."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import uncork
from uncork.locale import LANGUAGES, catalogue
from uncork.readers.foreign import FORMATS
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


NAMED = {
    "MissingEvidence": ("missing.{}", "record.{}"),
    "NotAssessed": (),
    "Evidence": ("metric.{}",),
    "Line": ("metric.{}",),
    "Quality": ("quality.{}",),
    "Message": ("{}",),
    "UncorkError": ("error.{}",),
    "UnreadableError": ("error.{}",),
    "UsageError": ("error.{}",),
    "PickleError": ("error.{}",),
}
"""What the code makes with an id, and the texts that go with it."""


def named_keys() -> Iterator[tuple[str, str]]:
    """Yield the texts that go with each id that the code spells out, and where."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "metric" and isinstance(node.value, ast.Constant):
                yield f"metric.{node.value.value}", f"{path.name}:{node.value.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMED:
                arguments = node.args if node.func.id == "MissingEvidence" else node.args[:1]
                for argument in arguments:
                    if isinstance(argument, ast.Constant):
                        for key in NAMED[node.func.id]:
                            yield key.format(argument.value), f"{path.name}:{node.lineno}"


def advice_ids(path: Path) -> set[str]:
    """Return the ids of advice that a rule's code chooses among, where it spells them out."""
    chosen = [
        keyword.value
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "advice"
    ]
    return {text for value in chosen for text in _texts(value)}


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the texts below a node, conditions left out."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif not isinstance(node, ast.Compare):
        for below in ast.iter_child_nodes(node):
            yield from _texts(below)


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


def test_every_id_has_its_texts():
    """What was missing, what was measured, what limits a recording: each id has its texts."""
    named = list(named_keys())
    assert {"missing.events", "record.events"} <= {key for key, _ in named}, "the search finds what it looks for"
    assert [(key, where) for key, where in named if key not in catalogue("en")] == []


def test_every_refusal_is_an_id():
    """What stops uncork is told in the reader's language: errors are raised with an id, never a text."""
    texts = {key for key, _ in named_keys() if key.startswith("error.")}
    assert len(texts) > 50, "the search finds what it looks for"
    assert texts <= set(catalogue("en"))
    words = {
        f"error.{node.value}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    told = {word.removeprefix("error.") if word.startswith("error.error.") else word for word in words}
    foreign = {f"error.foreign_{form.id}" for form in FORMATS}
    assert {key for key in catalogue("en") if key.startswith("error.")} - told - foreign == set(), (
        "texts that nothing tells"
    )


@pytest.mark.parametrize("rule_id", list(rules()))
def test_advice_is_on_the_page(rule_id: str):
    """A rule chooses among the advice that its page gives."""
    folder = rules()[rule_id].folder
    chosen = advice_ids(folder / f"{rule_id.replace('-', '_')}.py")
    assert chosen <= set(page(folder, rule_id, "en").advice)


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
    for each in (english, chinese):
        assert all(f"### {name}: " in each.manual for name in each.advice), "the manual holds all advice"
    for told in english.advice.values():
        assert told.snippet, f"{told.id} has nothing to copy"
    for field in ("title", "because"):
        wanted = set(PLACEHOLDER.findall(getattr(english, field)))
        assert set(PLACEHOLDER.findall(getattr(chinese, field))) == wanted, field
    for name, advice in english.advice.items():
        other = chinese.advice[name]
        for field in ("text", "snippet"):
            wanted = set(PLACEHOLDER.findall(getattr(advice, field)))
            assert set(PLACEHOLDER.findall(getattr(other, field))) == wanted, (name, field)
        assert all(getattr(one, field) for one in (advice, other) for field in ("effort", "risk", "check")), name
