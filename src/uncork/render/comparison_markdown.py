"""The comparison of two reports as Markdown: a comment for a pull request."""

from collections.abc import Iterator

from uncork.compare import Comparison
from uncork.locale import say
from uncork.render.comparison import KINDS, comparison_cautions, comparison_notes, told_findings
from uncork.render.controls import shown
from uncork.render.markdown import escape, table_lines
from uncork.report import spell
from uncork.units import format_ns


def render_comparison_markdown(comparison: Comparison, lang: str, *, top: int = 10) -> str:
    """Return the comparison as Markdown: the sentence, what the difference is made of, findings."""
    return shown("\n".join(_lines(comparison, lang, top))) + "\n"


def _lines(comparison: Comparison, lang: str, top: int) -> Iterator[str]:
    yield f"### {escape(spell(comparison.sentence, lang))}"
    yield ""
    yield escape(comparison_notes(comparison, lang))
    for caution in comparison_cautions(comparison, lang):
        yield ""
        yield f"⚠ {escape(caution)}"
    head = [say(lang, f"compare.{column}") for column in ("before", "after", "change")]
    for title, changes, prefix in (
        ("compare.ledger", comparison.ledger, "cause."),
        ("compare.operators", comparison.operators, ""),
    ):
        if changes:
            yield ""
            yield from table_lines(
                [say(lang, title), *head],
                [
                    [
                        escape(say(lang, prefix + one.name) if prefix else one.name),
                        format_ns(one.before_ns),
                        format_ns(one.after_ns),
                        ("+" if one.difference_ns > 0 else "−") + format_ns(abs(one.difference_ns)),
                    ]
                    for one in changes[:top]
                ],
            )
    for kind in KINDS:
        findings = told_findings(comparison, kind, lang)
        if findings:
            yield ""
            yield f"**{say(lang, f'compare.{kind}')}**"
            yield ""
            yield from (f"- {escape(title)}" for title, _ in findings)
