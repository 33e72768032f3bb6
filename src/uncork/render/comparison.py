"""The comparison of two reports as text for a terminal."""

import io
from collections.abc import Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table

from uncork.compare import Change, Comparison
from uncork.findings import Finding
from uncork.locale import say
from uncork.render.controls import print_parts
from uncork.render.lines import NARROW, Text
from uncork.render.tables import where
from uncork.report import finding_texts
from uncork.units import format_ns, format_share

KINDS = ("gone", "new", "kept")
_MOST_FINDINGS = 3


def render_comparison(
    comparison: Comparison, lang: str, *, top: int = 10, width: int = 100, color: bool = False
) -> str:
    """Return the comparison as text: the sentence, then what moved."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        force_jupyter=False,
        no_color=not color,
        highlight=False,
        markup=False,
    )
    print_parts(console, _parts(comparison, lang, top, narrow=width < NARROW))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _parts(comparison: Comparison, lang: str, top: int, *, narrow: bool) -> Iterator[RenderableType]:
    sentence = comparison.sentence
    style = {"compare.faster": "bold green", "compare.slower": "bold red"}.get(sentence.id, "bold")
    yield ""
    yield Text(say(lang, sentence.id, sentence.params), style=style)
    yield Text(comparison_notes(comparison, lang), style="dim")
    for caution in comparison_cautions(comparison, lang):
        yield _marked("!", "bold yellow", Text(caution, style="yellow"))
    for title, changes, prefix in (
        ("compare.ledger", comparison.ledger, "cause."),
        ("compare.operators", comparison.operators, ""),
    ):
        if changes:
            yield ""
            yield Text(say(lang, title), style="bold")
            yield _changes(changes[:top], prefix, lang, narrow=narrow)
    for kind in KINDS:
        yield from _findings(lang, kind, told_findings(comparison, kind, lang))


def told_findings(comparison: Comparison, kind: str, lang: str) -> list[tuple[str, Finding]]:
    """Return the titles of findings of one of `KINDS`, with what those that are still there cost before and now."""
    pairs = comparison.kept if kind == "kept" else [(None, one) for one in getattr(comparison, kind)]
    return [(finding_texts(now, lang)["title"] + _moved(was, now, lang), now) for was, now in pairs]


def _moved(was: Finding | None, now: Finding, lang: str) -> str:
    """Return how a finding's share and time per step changed; nothing where they did not, or it costs no time."""
    if was is None or not (was.cost_ns_per_step or now.cost_ns_per_step):
        return ""
    figures = [
        f"{before} → {after}"
        for spell, name in ((format_share, "share"), (format_ns, "cost_ns_per_step"))
        if (before := spell(getattr(was, name))) != (after := spell(getattr(now, name)))
    ]
    return say(lang, "compare.moved", {"figures": say(lang, "ui.comma").join(figures)}) if figures else ""


def comparison_notes(comparison: Comparison, lang: str) -> str:
    """Return what a reader of the comparison must know: verdicts, busy shares, noise, what was measured."""
    before, after = (say(lang, f"class.{one.value}") for one in comparison.verdict)
    notes = [f"{before} → {after}" if comparison.verdict[0] != comparison.verdict[1] else before]
    if None not in comparison.busy_share:
        shares = [format_share(share) for share in comparison.busy_share if share is not None]
        notes.append(say(lang, "compare.busy", {"before": shares[0], "after": shares[1]}))
    if all(comparison.peak_bytes):
        was_bytes, now_bytes = comparison.peak_bytes
        notes.append(say(lang, "compare.peak", {"before_bytes": was_bytes, "after_bytes": now_bytes}))
    if comparison.step_change_share is None:
        return " · ".join(notes)
    if comparison.noise_share is None:
        notes.append(say(lang, "compare.noise_unknown"))
    else:
        noise = {"noise_share": comparison.noise_share, "noise_ns": comparison.noise_ns}
        notes.append(say(lang, "compare.noise_known.uneven" if comparison.is_uneven else "compare.noise_known", noise))
    notes.append(say(lang, "compare.bare" if comparison.measured_without_profiler else "compare.watched"))
    return " · ".join(notes)


def comparison_cautions(comparison: Comparison, lang: str) -> Iterator[str]:
    """Yield what a step time alone hides: what more ranks brought, two jobs for one, rows from other steps."""
    if comparison.scaling is not None:
        yield from (say(lang, one.id, one.params) for one in comparison.scaling.sentences)
    if comparison.unlike:
        parts = [
            say(lang, "compare.unlike.one", {"what": say(lang, f"compare.unlike.{what}"), "before": was, "after": now})
            for what, was, now in comparison.unlike
        ]
        yield say(lang, "compare.unlike", {"what": say(lang, "ui.comma").join(parts)})
    if comparison.is_uneven:
        yield say(lang, "compare.uneven")
    for key, shares in (
        ("compare.others", comparison.others_share),
        ("compare.queued", comparison.queued_share),
        ("compare.beside", comparison.beside_share),
    ):
        if any(shares):
            was, now = (say(lang, "compare.untold") if share is None else share for share in shares)
            yield say(lang, key, {"before_share": was, "after_share": now})
    if comparison.watched is not None:
        step = comparison.watched
        yield say(lang, "compare.rows_watched", {"before_ns": step.before_ns, "after_ns": step.after_ns})


def _changes(changes: Sequence[Change], prefix: str, lang: str, *, narrow: bool) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=True, header_style="dim")
    table.add_column("", overflow="ellipsis", max_width=46)  # where room is short names give way, never figures
    for column in ("compare.change",) if narrow else ("compare.before", "compare.after", "compare.change"):
        table.add_column(say(lang, column), justify="right", no_wrap=True)
    for change in changes:
        sign = "+" if change.difference_ns > 0 else "−"
        table.add_row(
            Text(say(lang, prefix + change.name) if prefix else change.name),
            *(() if narrow else (format_ns(change.before_ns), format_ns(change.after_ns))),
            Text(sign + format_ns(abs(change.difference_ns)), style="red" if change.difference_ns > 0 else "green"),
        )
    return table


def _marked(mark: str, style: str, text: RenderableType) -> Table:
    """Return an item of a list: what does not fit on its line goes on below the text, not below the mark."""
    item = Table.grid(padding=(0, 1))
    item.add_column(no_wrap=True)
    item.add_column(overflow="fold")
    item.add_row(Text(mark, style=style), text)
    return item


def _findings(lang: str, kind: str, findings: Sequence[tuple[str, Finding]]) -> Iterator[RenderableType]:
    if not findings:
        return
    yield ""
    yield Text(say(lang, f"compare.{kind}"), style="bold")
    mark = {"gone": "✓", "new": "!", "kept": "="}[kind]
    for title, finding in findings[:_MOST_FINDINGS]:
        places = " · ".join(place for place in where(finding.location) if place not in title)
        yield _marked(f"  {mark}", "bold", Text.assemble(title, (f"  {places}", "cyan") if places else ""))
    if len(findings) > _MOST_FINDINGS:
        yield Text("    " + say(lang, "ui.more", {"count": len(findings) - _MOST_FINDINGS}), style="dim")
