"""Rule pages as tests: what a page's examples promise, the whole pipeline must keep."""

import json
import math
import re
from pathlib import Path

from uncork import pipeline, rules
from uncork.records import dataclass
from uncork.report import Report
from uncork.testing.recordings import sketch

OUTCOMES = ("found", "clear", "not assessed")
_SECTION = re.compile(r"^## Examples\s*$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(
    r"^### (?P<outcome>[^\n]+)$|^```sketch\n(?P<sketch>.*?)^```(?:\s*^```expect\n(?P<expect>.*?)^```)?",
    re.MULTILINE | re.DOTALL,
)
TOLERANCE_SHARE = 0.01
"""Numbers of an ``expect`` block hold when they are this close: pages round for readers."""


class PageError(AssertionError):
    """A page does not keep its promise, or has no examples to keep it with."""


@dataclass(frozen=True)
class Example:
    """One example of a page.

    Args:
        outcome: ``found``, ``clear`` or ``not assessed``.
        sketch: The recording, as text.
        expect: Fields of the finding and their values: ``location.line 12``.
    """

    outcome: str
    sketch: str
    expect: tuple[tuple[str, object], ...] = ()


def page_of(rule: str) -> Path:
    """Return the English page of a rule, by its id."""
    name = rule.replace("-", "_")
    pages = sorted(Path(rules.__file__).parent.glob(f"*/{name}.md"))
    if not pages:
        raise PageError(f"rule {rule} has no page {name}.md")
    return pages[0]


def examples(page: str) -> list[Example]:
    """Return the examples of a page's text, in order."""
    section = _SECTION.search(page)
    found, outcome = [], ""
    for match in _EXAMPLE.finditer(section[1] if section else ""):
        if match["outcome"]:
            outcome = match["outcome"].strip().lower()
        else:
            found.append(Example(outcome, match["sketch"], _expectations(match["expect"] or "")))
    return found


def check_page(rule: str, text: str | None = None) -> None:
    """Raise `PageError` unless the pipeline gives each example of a rule's page the outcome it stands under.

    Args:
        rule: Id of the rule.
        text: The page, when it is not the rule's own.
    """
    known = examples(page_of(rule).read_text("utf-8") if text is None else text)
    missing = [outcome for outcome in OUTCOMES if outcome not in {example.outcome for example in known}]
    if missing:
        raise PageError(f"the page of {rule} has no example of: {', '.join(missing)}")
    for number, example in enumerate(known, 1):
        report = pipeline.analyze_recordings(sketch(example.sketch))
        outcome = outcome_of(rule, report)
        if outcome != example.outcome:
            raise PageError(f"example {number} of {rule} should be {example.outcome}, but is {outcome}")
        for path, expected in example.expect:
            _check(f"example {number} of {rule}", path, _value(report, rule, path), expected)


def outcome_of(rule: str, report: Report) -> str:
    """Return what became of a rule: ``found``, ``clear`` or ``not assessed``."""
    if any(finding.rule == rule for finding in report.findings):
        return "found"
    return "not assessed" if any(silent.rule == rule for silent in report.not_assessed) else "clear"


def _expectations(text: str) -> tuple[tuple[str, object], ...]:
    pairs = []
    for line in filter(None, map(str.strip, text.splitlines())):
        path, _, value = line.partition(" ")
        try:
            pairs.append((path, json.loads(value)))
        except ValueError:
            pairs.append((path, value.strip()))
    return tuple(pairs)


def _value(report: Report, rule: str, path: str) -> object:
    """Return what a dotted path names: ``verdict.…`` of the report, anything else of the rule's finding."""
    first, *rest = path.split(".")
    thing: object = report.verdict if first == "verdict" else next(f for f in report.findings if f.rule == rule)
    for name in rest if first == "verdict" else [first, *rest]:
        thing = thing.get(name) if isinstance(thing, dict) else getattr(thing, name)
    return getattr(thing, "value", thing)


def _check(where: str, path: str, value: object, expected: object) -> None:
    if isinstance(expected, (int, float)) and isinstance(value, (int, float)):
        holds = math.isclose(value, expected, rel_tol=TOLERANCE_SHARE, abs_tol=1e-9)
    else:
        holds = value == expected
    if not holds:
        raise PageError(f"{where}: {path} should be {expected}, but is {value}")
