"""Terminal: the verdict first, then where a step goes, what to change, and what could not be known."""

import io
import shlex
from collections.abc import Iterator, Mapping

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table

from uncork.findings import CLASSES, Bottleneck, Finding
from uncork.locale import say
from uncork.measure.views.names import printable
from uncork.render import Options
from uncork.render.about_run import notes
from uncork.render.controls import print_parts
from uncork.render.lines import NARROW, Text
from uncork.render.memory_text import memory_parts
from uncork.render.snippet import Snippet
from uncork.render.tables import (
    COLUMNS,
    TEXT_COLUMNS,
    both_ends,
    cell,
    divided_step,
    fitting,
    gain,
    shown_columns,
    step_facts,
    top_rows,
    where,
)
from uncork.report import LedgerEntry, Report, finding_texts, spell
from uncork.units import format_ns, format_quantity, format_share

# Okabe and Ito's palette, told apart by people with any colour vision; the badge's text carries the meaning alone.
COLORS = {
    Bottleneck.COMPUTE: "#56b4e9",
    Bottleneck.MEMORY: "#cc79a7",
    Bottleneck.DATA_LOADING: "#e69f00",
    Bottleneck.COMMUNICATION: "#009e73",
    Bottleneck.FRAMEWORK: "#d55e00",
    Bottleneck.NONE: "#009e73",
    Bottleneck.UNDETERMINED: "#999999",
}
_DEFAULT_ROWS = 10
_MOST_FINDINGS = 5
_GAIN_WIDTH = 8
_NO_RISK = ("", "none", "None.", "无", "没有")
_SMALL_CAUSE = 0.005
_FIGURES_WIDTH, _LEAST_BAR, _MOST_BAR = 22, 10, 40
"""Beside names and bars: a step's times and shares, and the room between."""


def render(report: Report, options: Options) -> str:
    """Return the report as text for a terminal of ``options.width`` columns."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=options.width,
        force_terminal=options.color,
        force_jupyter=False,  # in a notebook rich would show the lines instead of writing them
        no_color=not options.color,
        color_system="truecolor" if options.color else None,
        highlight=False,
        legacy_windows=False,
        emoji=False,
        markup=False,
    )
    print_parts(console, _parts(report, options))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _parts(report: Report, options: Options) -> Iterator[RenderableType]:
    yield ""
    yield _headline(report, options)
    yield _facts(report, options)
    if options.verbose and report.run.get("startup"):
        yield _startup(report.run["startup"], options.lang)
    yield from _quality(report, options)
    if report.ledger:
        yield ""
        yield from _ledger(report, options)
    yield from (
        Padding(Text(spell(one, options.lang), style="dim"), (0, 0, 0, 2)) for one in report.verdict.disagreements
    )
    if report.memory:
        yield from memory_parts(report.memory, options)
    yield ""
    yield from _findings(report, options)
    yield from _thresholds(report, options)
    # Without a timeline (cProfile alone) the tables are all there is to show.
    if options.verbose or options.top or options.sort or not report.ledger:
        for name in COLUMNS:
            yield from _table(report, name, options)
    yield from _doubts(report, options)
    yield from _to_record(report, options)
    yield from _next(report, options)


def _headline(report: Report, options: Options) -> RenderableType:
    verdict = report.verdict
    badge = Text(f" {say(options.lang, f'class.{verdict.bottleneck.value}').upper()} ")
    badge.stylize(f"bold black on {COLORS[verdict.bottleneck]}")
    sentence = Text(spell(verdict.summary, options.lang), style="bold")
    if not _wide(options):
        return Group(badge, sentence)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(badge, sentence)
    return grid


def _wide(options: Options) -> bool:
    return options.width >= NARROW


def _facts(report: Report, options: Options) -> Text:
    lang, run = options.lang, report.run
    facts = []
    if report.verdict.bottleneck is not Bottleneck.UNDETERMINED:  # that nothing can be known is no answer to be sure of
        facts.append(say(lang, "ui.confidence", {"confidence_share": report.verdict.confidence}))
    if report.verdict.contributing:
        names = say(lang, "ui.comma").join(say(lang, f"class.{one.value}") for one in report.verdict.contributing)
        facts.append(say(lang, "ui.contributing", {"classes": names}))
    facts += step_facts(run, lang)
    if len(run.get("ranks", ())) > 1:
        facts.append(say(lang, "ui.ranks", {"ranks": len(run["ranks"])}))
    device = next((one["name"] for one in run.get("devices", ()) if one["name"]), None)
    facts.append(
        printable(device) if device and run.get("on_device") else "CPU" if run.get("on_device") is False else ""
    )
    if "torch" in run.get("versions", {}):
        facts.append(printable(f"torch {run['versions']['torch']}"))
    return Text(" · ".join(fact for fact in facts if fact), style="dim")


def _startup(phases: Mapping[str, int], lang: str) -> Text:
    """Return what the program did before its steps, which no figure of a step contains."""
    parts = [f"{say(lang, f'page.field.{name}')} {format_quantity(name, value)}" for name, value in phases.items()]
    return Text(say(lang, "ui.startup", {"phases": say(lang, "ui.comma").join(parts)}), style="dim")


def _quality(report: Report, options: Options) -> Iterator[RenderableType]:
    for issue in report.quality:
        if issue.severity == "info" and not options.verbose:
            continue
        text = Text("! ", style="bold yellow")
        text.append(say(options.lang, f"quality.{issue.id}", issue.params), style="yellow")
        gap = "" if text.plain.endswith("。") else " "  # a Chinese stop is as wide as a stop and a space
        text.append(gap + report.how_to_mend(issue, options.lang), style="dim")
        yield text
    for note in notes(report, options.lang):
        yield Text(f"· {note}", style="dim")


def _ledger(report: Report, options: Options) -> Iterator[RenderableType]:
    step = say(options.lang, "ui.step_goes" if report.run.get("marked_steps") else "ui.window_goes")
    entries = report.ledger_of(options.rank)
    of_rank = "" if entries is report.ledger else f" · rank {options.rank}"
    whole = divided_step(report.run, sum(entry.ns_per_step for entry in entries), options.lang)
    yield Text.assemble((step + of_rank, "bold"), (f"  {whole}", "dim"))
    names = [say(options.lang, f"cause.{entry.cause}") for entry in entries]
    # Names before bars: a bar that is cut still tells, a name does not.
    longest = min(max(map(cell_len, names)), options.width - _FIGURES_WIDTH - (_LEAST_BAR if _wide(options) else 0))
    room = min(_MOST_BAR, options.width - _FIGURES_WIDTH - longest) if _wide(options) else 0
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, width=longest)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    largest = max(entry.share for entry in entries)
    small: list[LedgerEntry] = []
    for entry in entries:
        if entry.share < _SMALL_CAUSE and not options.verbose:
            small.append(entry)
            continue
        bar = Text("█" * max(entry.share >= _SMALL_CAUSE and room > 0, round(room * entry.share / largest)))
        bar.stylize(COLORS[entry.bottleneck] if entry.bottleneck else "#999999")
        name = Text(say(options.lang, f"cause.{entry.cause}"), overflow="ellipsis")
        table.add_row(name, format_ns(entry.ns_per_step), format_share(entry.share), bar)
    if small:
        rest = sum(entry.ns_per_step for entry in small)
        several = say(options.lang, "ui.small_causes", {"count": len(small)})
        name = Text(several if len(small) > 1 else say(options.lang, f"cause.{small[0].cause}"), style="dim")
        table.add_row(name, format_ns(rest), format_share(sum(entry.share for entry in small)), "")
    yield Padding(table, (0, 0, 0, 2))
    if not of_rank and (usual := report.usual_step(options.lang)):
        yield Padding(Text(usual, style="dim"), (0, 0, 0, 2))


def _findings(report: Report, options: Options) -> Iterator[RenderableType]:
    lang = options.lang
    if not report.findings:
        yield Text(say(lang, report.nothing_found), style="bold")
        return
    yield Text(say(lang, "ui.what_to_change"), style="bold")
    chosen = _first(report, options)
    widest = max(_GAIN_WIDTH, *(cell_len(gain(finding, lang)) for _, finding in chosen))
    for number, finding in chosen:
        yield Padding(_finding(number, finding, options, widest), (0, 0, 0, 2))
    hidden = len(report.findings) - len(chosen)
    if hidden > 0:
        yield Padding(Text(say(lang, "ui.more_findings", {"count": hidden}), style="dim"), (0, 0, 0, 2))
    if report.gains_overlap:
        yield Padding(Text(say(lang, "ui.gains_overlap"), style="dim"), (0, 0, 0, 2))


def _first(report: Report, options: Options) -> list[tuple[int, Finding]]:
    """Return the findings to show, numbered; head room in memory gives back no time, and has a place all the same."""
    numbered = list(enumerate(report.findings, start=1))
    if options.verbose or len(numbered) <= _MOST_FINDINGS:
        return numbered
    first, rest = numbered[:_MOST_FINDINGS], numbered[_MOST_FINDINGS:]
    shown = any(_is_head_room(finding) for _, finding in first)
    head_room = [] if shown else [one for one in rest if _is_head_room(one[1])][:1]
    return [*first[: _MOST_FINDINGS - len(head_room)], *head_room]


def _is_head_room(finding: Finding) -> bool:
    return finding.bottleneck is Bottleneck.MEMORY and not finding.cost_ns_per_step


def _finding(number: int, finding: Finding, options: Options, gain_width: int) -> RenderableType:
    """Return one finding: what it is worth and what it is; where; why; what to do."""
    lang, texts = options.lang, finding_texts(finding, options.lang)
    title = Text(texts["title"], style="bold")
    if finding.bottleneck in CLASSES:  # remarks on the recording itself have no class
        label = say(lang, f"class.{finding.bottleneck.value}")
        title.append(f"  {label}", style="not bold dim")
        title.last = len(label)
    lines: list[RenderableType] = [title]
    places = where(finding.location)
    if places:
        lines.append(Text.assemble((say(lang, "ui.where") + " ", "dim"), (" · ".join(places), "cyan")))
    if texts["worth"]:
        lines.append(Text(texts["worth"], style="green"))
    if options.verbose:
        lines.append(Text(texts["because"], style="dim"))
        lines.extend(_evidence(finding, lang))
    for advice in texts["advice"][: None if options.verbose else 1]:
        lines.append(Text.assemble((say(lang, "ui.fix") + " ", "dim"), advice["text"]))
        if advice["snippet"]:
            lines.append(Padding(Snippet(advice["snippet"], "green"), (0, 0, 0, 4)))
        if options.verbose and advice["risk"] not in _NO_RISK:
            lines.append(Padding(Text(say(lang, "ui.risk") + " " + advice["risk"], style="dim"), (0, 0, 0, 4)))
    worth = Text(gain(finding, lang) or "–", style="bold green")
    if not _wide(options):
        return Group(Text.assemble((f"{number}  ", "dim"), worth), Padding(Group(*lines), (0, 0, 0, 3)))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(no_wrap=True, min_width=gain_width)
    grid.add_column(overflow="fold")  # a Chinese sentence is one word to rich, which cuts words
    grid.add_row(Text(str(number), style="dim"), worth, Group(*lines))
    return grid


def _evidence(finding: Finding, lang: str) -> Iterator[Text]:
    for one in finding.evidence:
        line = Text("  ")
        line.append({True: "✓ ", False: "✗ ", None: "· "}[one.holds])
        line.append(f"{say(lang, f'metric.{one.metric}')} {format_quantity(one.unit_name, one.value)}")
        if one.threshold is not None:
            line.append(f" ({one.relation} {format_quantity(one.unit_name, one.threshold)})", style="dim")
        yield line


def _thresholds(report: Report, options: Options) -> Iterator[RenderableType]:
    """Yield, with -v, the usual thresholds beside what was measured."""
    lang = options.lang
    if not options.verbose or not report.verdict.evidence:
        return
    yield ""
    yield Text(say(lang, "ui.thresholds"), style="bold")
    table = Table.grid(padding=(0, 2))
    for one in report.verdict.evidence:
        line = one.evidence
        table.add_row(
            "  " + say(lang, f"class.{one.bottleneck.value}"),
            ("✓ " if line.holds else "✗ ") + say(lang, f"metric.{line.metric}"),
            format_quantity(line.unit_name, line.value),
            Text(f"{line.relation} {format_quantity(line.unit_name, line.threshold)}", style="dim"),
        )
    yield table


def _table(report: Report, name: str, options: Options) -> Iterator[RenderableType]:
    rows = top_rows(report, name, options.sort, options.top or _DEFAULT_ROWS, options.rank)
    if not rows:
        return
    columns = fitting(name, shown_columns(name, rows), options.width)
    table = Table(box=None, padding=(0, 1), pad_edge=False, header_style="dim", expand=False)
    for column, width in columns.items():
        title = say(options.lang, f"column.{column}")
        if column in TEXT_COLUMNS:
            table.add_column(title, overflow="ellipsis", no_wrap=True, max_width=width)
        else:
            table.add_column(title, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        texts = {column: cell(name, row, column, options.lang) for column in columns}
        if name == "kernels":
            texts["name"] = both_ends(texts["name"], columns["name"])
        table.add_row(*map(Text, texts.values()))
    yield ""
    yield Text(say(options.lang, f"table.{name}", {"rows": len(rows)}), style="bold")
    yield table


def _doubts(report: Report, options: Options) -> Iterator[RenderableType]:
    """Yield what would overturn the verdict, and what was not measured."""
    lang = options.lang
    if report.verdict.would_be_wrong_if:
        yield ""
        yield Text(say(lang, "ui.wrong_if"), style="dim")
        for one in report.verdict.would_be_wrong_if[: None if options.verbose else 2]:
            yield Padding(Text("· " + spell(one, lang), style="dim"), (0, 0, 0, 2))
    lacks = [lack for lack in report.not_assessed if report.applies(lack)]
    missing = dict.fromkeys(what for lack in lacks for what in lack.missing)
    params = {
        "clear": len(report.clear),
        "beyond": len(report.not_assessed) - len(lacks),
        "count": len(lacks),
        "missing": say(lang, "ui.comma").join(say(lang, f"missing.{what}") for what in missing),
    }
    yield ""
    yield Text(say(lang, "ui.rules_looked", params), style="dim")
    if lacks:
        yield Text(say(lang, "ui.not_assessed", params), style="dim")
        if options.verbose:
            # What most rules lack comes first: one line each, not one for each rule.
            wanting = {what: [lack.rule for lack in lacks if what in lack.missing] for what in missing}
            for what, ids in sorted(wanting.items(), key=lambda item: -len(item[1])):
                line = Text(f"· {report.how_to_record(what, lang)} ", style="dim")
                yield Padding(line.append(", ".join(ids)), (0, 0, 0, 2))


def _to_record(report: Report, options: Options) -> Iterator[RenderableType]:
    """Yield what to record where that would make an uncertain answer sure."""
    lines = report.to_record(options.lang)
    if lines:
        yield ""
        yield Text(say(options.lang, "ui.to_record"), style="bold")
        yield from (Padding(Text("· " + line), (0, 0, 0, 2)) for line in lines)


def _next(report: Report, options: Options) -> Iterator[RenderableType]:
    lang = options.lang
    yield ""
    yield Rule(style="dim", characters="─")
    steps = []
    if report.verdict.summary.id == "verdict.undetermined.no-timeline":
        steps.append("uncork run script.py")
    if options.run:
        steps.append(f"uncork open {shlex.quote(options.run)}")
    if report.findings:
        steps.append(f"uncork explain {report.findings[0].rule}")
    if not options.verbose:
        steps.append(say(lang, "ui.verbose"))
    label = say(lang, "ui.next")
    for number, step in enumerate(steps):
        yield Text.assemble(((label if number == 0 else " " * cell_len(label)) + "  ", "dim"), step, overflow="fold")
