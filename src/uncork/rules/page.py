"""Page: what a rule tells people, in each language, read from ``NAME.md`` and ``NAME.zh.md``.

A page is Markdown with a head of ``key: value`` lines between two ``---`` lines (``name``, ``title``, ``because``;
the latter two are templates), then ``## Why it costs``, ``## When it is not a problem``, ``## What to do`` with one
``### id: text`` per piece of advice (lines ``- effort: …``, ``- risk: …``, ``- check: …``, prose, one code block),
and ``## Examples``. Headings are translated freely; only the ids and the keys are the same in all languages.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from uncork.records import dataclass

_HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_ADVICE = re.compile(r"^### ([a-z0-9-]+): (.+)$", re.MULTILINE)
_POINT = re.compile(r"^- (effort|risk|check): (.+)$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_CODE = re.compile(r"^```[a-z]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Advice:
    """One thing to change.

    Args:
        id: The same in all languages.
        text: What to do, one line; a template.
        detail: More about it, Markdown.
        snippet: Code to paste; a template.
        effort: What it takes.
        risk: What may go wrong, and when it backfires.
        check: How to see that it worked.
    """

    id: str
    text: str
    detail: str
    snippet: str
    effort: str
    risk: str
    check: str


@dataclass(frozen=True)
class Page:
    """A rule's manual page in one language.

    Args:
        name: What the fault is called.
        title: One line for a finding; a template.
        because: Why uncork thinks so; a template.
        advice: By id, in the page's order.
        body: The Markdown below the head.
    """

    name: str
    title: str
    because: str
    advice: Mapping[str, Advice]
    body: str

    @property
    def manual(self) -> str:
        """Return the body for people: without the examples (its last section), placeholders as ``<name>``."""
        text = self.body[: self.body.rfind("\n## ")].strip() + "\n"
        return _PLACEHOLDER.sub(r"<\1>", text)


def page(folder: Path, rule_id: str, lang: str) -> Page:
    """Return a rule's page; languages without one get the English page."""
    stem = rule_id.replace("-", "_")
    path = folder / f"{stem}.{lang}.md"
    return read_page(path if lang != "en" and path.is_file() else folder / f"{stem}.md")


@cache
def read_page(path: Path) -> Page:
    """Return a page from its file.

    Raises:
        ValueError: The page lacks its head or one of its keys.
    """
    text = path.read_text("utf-8")
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"{path.name} does not begin with a head between two --- lines")
    keys = dict(line.split(": ", 1) for line in head[1].splitlines() if ": " in line)
    for key in ("name", "title", "because"):
        if key not in keys:
            raise ValueError(f"{path.name} lacks the key {key}")
    body = text[head.end() :].strip() + "\n"
    return Page(keys["name"], keys["title"], keys["because"], _advice(body), body)


def _advice(body: str) -> dict[str, Advice]:
    found: dict[str, Advice] = {}
    for heading in _ADVICE.finditer(body):
        rest = re.split(r"^#{2,3} ", body[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        points = dict(_POINT.findall(rest))
        code = _CODE.search(rest)
        detail = _CODE.sub("", _POINT.sub("", rest)).strip()
        found[heading[1]] = Advice(
            id=heading[1],
            text=heading[2].strip(),
            detail=detail,
            snippet=code[1].rstrip() if code else "",
            effort=points.get("effort", ""),
            risk=points.get("risk", ""),
            check=points.get("check", ""),
        )
    return found
