"""Markdown: the report as a comment for a pull request."""

from collections.abc import Iterator

from uncork.findings import Bottleneck
from uncork.locale import say
from uncork.render import Options
from uncork.render.about_run import notes
from uncork.render.controls import shown
from uncork.render.tables import COLUMNS, cell, gain, shown_columns, top_rows, where
from uncork.report import Report, finding_texts, spell
from uncork.units import format_ns, format_share

_DEFAULT_ROWS = 10


def render(report: Report, options: Options) -> str:
    """Return the report as Markdown."""
    return shown("\n".join(_lines(report, options))) + "\n"


def _lines(report: Report, options: Options) -> Iterator[str]:
    lang, verdict = options.lang, report.verdict
    sentence = escape(spell(verdict.summary, lang))
    yield f"### {say(lang, f'class.{verdict.bottleneck.value}')}: {sentence}"
    yield ""
    if verdict.bottleneck is not Bottleneck.UNDETERMINED:
        yield say(lang, "ui.confidence", {"confidence_share": verdict.confidence})
    for issue in report.quality:
        if issue.severity != "info":
            yield f"- ⚠ {escape(say(lang, f'quality.{issue.id}', issue.params))}"
    yield from (f"- {escape(note)}" for note in notes(report, lang))
    if lines := report.to_record(lang):
        yield f"\n{say(lang, 'ui.to_record')}\n"
        yield from (f"- {escape(line)}" for line in lines)
    if report.ledger:
        yield ""
        goes = say(lang, "ui.step_goes" if report.run.get("marked_steps") else "ui.window_goes")
        yield from table_lines([goes, "", ""], [
            [say(lang, f"cause.{entry.cause}"), format_ns(entry.ns_per_step), format_share(entry.share)]
            for entry in report.ledger
        ])  # fmt: skip
        if usual := report.usual_step(lang):
            yield f"\n{usual}"
    yield from _findings(report, lang)
    for name in COLUMNS:
        rows = top_rows(report, name, options.sort, options.top or _DEFAULT_ROWS, options.rank)
        if rows and (options.verbose or options.top or options.sort):
            columns = shown_columns(name, rows)
            yield ""
            yield f"#### {say(lang, f'table.{name}', {'rows': len(rows)})}"
            yield ""
            yield from table_lines(
                [say(lang, f"column.{column}") for column in columns],
                [[escape(cell(name, row, column, lang)) for column in columns] for row in rows],
            )


def _findings(report: Report, lang: str) -> Iterator[str]:
    """Yield what to change, worth most first, with code to copy."""
    if not report.findings:
        return
    yield ""
    yield f"#### {say(lang, 'ui.what_to_change')}"
    for number, finding in enumerate(report.findings, start=1):
        texts = finding_texts(finding, lang)
        places = " · ".join(f"`{_code(part)}`" for part in where(finding.location))
        yield ""
        yield " ".join(filter(None, (f"{number}.", gain(finding, lang), f"**{escape(texts['title'])}**", places)))
        for advice in texts["advice"][:1]:
            yield f"   {escape('. '.join(filter(None, (texts['worth'], advice['text']))))}"
            if advice["snippet"]:
                yield from ("   " + line for line in ["```python", *advice["snippet"].splitlines(), "```"])
    if report.gains_overlap:
        yield ""
        yield say(lang, "ui.gains_overlap")


def table_lines(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    for row in [head, ["---"] * len(head), *rows]:
        yield "| " + " | ".join(row) + " |"


def escape(text: str) -> str:
    """Return text that Markdown shows as it is: names of operators and files may hold anything."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", " ")
    for mark in "\\`*_[]|":
        text = text.replace(mark, f"\\{mark}")
    return text


def _code(text: str) -> str:
    return text.replace("`", "'").replace("\n", " ")
