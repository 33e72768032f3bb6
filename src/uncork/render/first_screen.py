"""The page's first screen as static HTML: readable without JavaScript, printable, everything escaped."""

import json
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from uncork.findings import Bottleneck, Evidence, Finding, Location, Verdict
from uncork.locale import say
from uncork.measure.views.names import printable
from uncork.render.about_run import notes
from uncork.render.evidence import view_of
from uncork.render.tables import NOTHING_SHARE, place, saved_memory, step_facts
from uncork.report import LedgerEntry, Report, finding_texts, spell
from uncork.units import format_ns, format_quantity, format_share

_MOST_OPEN = 3
_SMALL_CAUSE = 0.005
_MOST_CAUSES = 8
_MOST_NAMED = 12
_FEW = 2
_BAR_WIDTH = 1_000
_P95_STEPS = 20
"""In fewer steps no twentieth of them is longer than the 95th percentile."""
_BETWEEN = "\u00a0· "  # a line may end after the point, not begin with it
_CODE = re.compile(r"`([^`]+)`")


@cache
def palette() -> dict[str, Any]:
    """Return the colours that the page and its first screen share."""
    text = resources.files(__package__).joinpath("palette.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def shown(text: object) -> str:
    """Return text that HTML shows as it is; marks of direction and controls are spelt out."""
    return escape(printable(str(text)))


def prose(text: str) -> str:
    """Return a text of ours as HTML, what stands between backticks as code."""
    return _CODE.sub(r"<code>\1</code>", shown(text))


def first_screen(report: Report, lang: str) -> str:
    """Return the first screen in one language."""
    return "\n".join(
        [
            '<div class="verdict">',
            *_verdict(report, lang),
            *_ledger(report, lang),
            "</div>",
            *_quality(report, lang),
            *_findings(report, lang),
            *_rest(report, lang),
        ]
    )


def _verdict(report: Report, lang: str) -> Iterator[str]:
    verdict = report.verdict
    name = say(lang, f"class.{verdict.bottleneck.value}")
    yield f'<section class="answer"><p class="badge {verdict.bottleneck.value}">{shown(name)}</p>'
    yield f"<h1>{shown(spell(verdict.summary, lang))}</h1>"
    if verdict.bottleneck is not Bottleneck.UNDETERMINED:
        yield from _confidence(verdict, lang)
    if verdict.would_be_wrong_if:
        yield f'<div class="wrong"><h2>{shown(say(lang, "ui.wrong_if"))}</h2><ul>'
        yield from (f"<li>{shown(spell(one, lang))}</li>" for one in verdict.would_be_wrong_if)
        yield "</ul></div>"
    if lines := report.to_record(lang):
        yield f'<div class="wrong"><h2>{shown(say(lang, "ui.to_record"))}</h2><ul>'
        yield from (f"<li>{prose(line)}</li>" for line in lines)
        yield "</ul></div>"
    yield from _thresholds(report, lang)
    yield "</section>"


def _confidence(verdict: Verdict, lang: str) -> Iterator[str]:
    percent = round(verdict.confidence * 100)
    yield '<p class="confidence"><span class="meter" aria-hidden="true"><svg width="90" height="8">'
    yield '<rect width="90" height="8" rx="4" class="track"/>'
    yield f'<rect width="{percent * 0.9:.0f}" height="8" rx="4"/></svg></span> '
    yield shown(say(lang, "ui.confidence", {"confidence_share": verdict.confidence}))
    if verdict.contributing:
        names = say(lang, "ui.and").join(say(lang, f"class.{one.value}") for one in verdict.contributing)
        yield f" · {shown(say(lang, 'ui.contributing', {'classes': names}))}"
    yield "</p>"


def _thresholds(report: Report, lang: str) -> Iterator[str]:
    """Yield where the usual thresholds would mislead; and, folded, all of them beside what was measured."""
    verdict = report.verdict
    yield from (f'<p class="wrong">{shown(spell(one, lang))}</p>' for one in verdict.disagreements)
    if verdict.evidence:
        yield f'<details class="thresholds"><summary>{shown(say(lang, "ui.thresholds"))}</summary>'
        yield '<table class="evidence">'
        for one in verdict.evidence:
            yield _evidence(one.evidence, lang, say(lang, f"class.{one.bottleneck.value}"))
        yield "</table></details>"


def _ledger(report: Report, lang: str) -> Iterator[str]:
    """Yield the bar of a step and its causes, each with its time: colour is never the only carrier."""
    if not report.ledger:
        return
    run = report.run
    title = say(lang, "ui.step_goes" if run.get("marked_steps") else "ui.window_goes")
    yield f'<section class="ledger"><h2>{shown(title)} <small>{format_ns(run.get("step_ns") or 0)}</small></h2>'
    yield from _bar(report, lang, title)
    yield "<ol>"
    entries = [entry for entry in report.ledger if entry.share >= _SMALL_CAUSE][:_MOST_CAUSES]
    for entry in entries:
        yield (
            f'<li><i class="swatch{_idle_class(entry.cause)}" style="background:{_fill(entry.cause)}"></i>'
            f"<span>{shown(say(lang, f'cause.{entry.cause}'))}</span>"
            f"<b>{format_ns(entry.ns_per_step)}</b><b>{format_share(entry.share)}</b></li>"
        )
    small = [entry for entry in report.ledger if entry not in entries]
    if small:
        several = say(lang, "ui.small_causes", {"count": len(small)})
        label = several if len(small) > 1 else say(lang, f"cause.{small[0].cause}")
        ns, share = sum(entry.ns_per_step for entry in small), sum(entry.share for entry in small)
        yield f'<li class="small"><i class="swatch"></i><span>{shown(label)}</span><b>{format_ns(ns)}</b>'
        yield f"<b>{format_share(share)}</b></li>"
    yield "</ol>"
    if usual := report.usual_step(lang):
        yield f'<p class="muted">{shown(usual)}</p>'
    yield from _step_facts(report, lang)
    yield "</section>"


def _bar(report: Report, lang: str, title: str) -> Iterator[str]:
    spelt = ", ".join(
        f"{say(lang, f'cause.{entry.cause}')} {format_share(entry.share)}" for entry in report.ledger[:_MOST_CAUSES]
    )
    yield f'<svg class="stack" viewBox="0 0 {_BAR_WIDTH} 30" preserveAspectRatio="none" role="img"'
    yield f' aria-label="{shown(title)}: {shown(spelt)}">'
    yield (
        f'<defs><pattern id="hatch-{lang}" width="9" height="9" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><rect width="3" height="9" class="hatch-line"/></pattern></defs>'
    )
    x = 0.0
    for entry in _worked_first(report.ledger):
        wide = entry.share * _BAR_WIDTH
        for fill in (
            f'fill="{_fill(entry.cause)}"',
            *([f'fill="url(#hatch-{lang})"'] if _idle_class(entry.cause) else []),
        ):
            yield f'<rect x="{x:.2f}" width="{wide:.2f}" height="30" {fill}/>'
        yield f'<rect x="{x:.2f}" width="1.5" height="30" class="edge"/>'
        x += wide
    yield "</svg>"


def _worked_first(ledger: tuple[LedgerEntry, ...]) -> list[LedgerEntry]:
    """Return the ledger with work before waiting, each the largest first."""
    return sorted(ledger, key=lambda entry: (bool(_idle_class(entry.cause)), -entry.share))


def _step_facts(report: Report, lang: str) -> Iterator[str]:
    run = report.run
    facts = step_facts(run, lang)
    if run.get("p95_step_ns") and run.get("marked_steps") and run.get("steps", 0) >= _P95_STEPS:
        facts.append(f"p95 {format_ns(run['p95_step_ns'])}")
    if run.get("busy_share") is not None:
        key = "page.busy" if run.get("on_device") else "page.busy_cpu"
        facts.append(say(lang, key, {"busy_share": run["busy_share"]}))
    yield f'<p class="muted">{shown(" · ".join(facts))}</p>'


def _quality(report: Report, lang: str) -> Iterator[str]:
    issues, noted = [issue for issue in report.quality if issue.severity != "info"], notes(report, lang)
    if not issues and not noted:
        return
    yield f'<ul class="quality" aria-label="{shown(say(lang, "page.quality"))}">'
    for issue in issues:
        message, fix = say(lang, f"quality.{issue.id}", issue.params), report.how_to_mend(issue, lang)
        yield f"<li><b>!</b> {prose(message)} <span>{prose(fix)}</span></li>"
    for note in noted:
        yield f"<li><b>·</b> <span>{prose(note)}</span></li>"
    yield "</ul>"


def _findings(report: Report, lang: str) -> Iterator[str]:
    if not report.findings:
        yield f'<p class="nothing">{shown(say(lang, report.nothing_found))}</p>'
        return
    yield f'<h2 class="change">{shown(say(lang, "ui.what_to_change"))}</h2><ol class="findings">'
    for number, finding in enumerate(report.findings[:_MOST_OPEN]):
        yield from _finding(number, finding, report, lang)
    yield "</ol>"
    more = report.findings[_MOST_OPEN:]
    if more:
        yield f'<details class="more"><summary>{shown(say(lang, "page.more_findings", {"count": len(more)}))}</summary>'
        yield f'<ol class="findings" start="{_MOST_OPEN + 1}">'
        for number, finding in enumerate(more, start=_MOST_OPEN):
            yield from _finding(number, finding, report, lang)
        yield "</ol></details>"
    if report.gains_overlap:
        yield f'<p class="nothing">{shown(say(lang, "ui.gains_overlap"))}</p>'


def _finding(number: int, finding: Finding, report: Report, lang: str) -> Iterator[str]:
    texts = finding_texts(finding, lang)
    yield f'<li id="finding-{number + 1}-{lang}"><div class="head"><span class="number">{number + 1}</span>'
    of_class = say(lang, f"class.{finding.bottleneck.value}")
    yield f'<h3>{prose(texts["title"])} <small class="class">{shown(of_class)}</small></h3>'
    yield f'<p class="gain">{_gain(finding, report, lang)}</p></div><div class="body">'
    yield "<div>"
    places = _places(finding.location)
    if places:
        yield '<p class="places">' + " ".join(f"<code><bdi>{shown(one)}</bdi></code>" for one in places) + "</p>"
    if texts["worth"]:
        yield f'<p class="muted">{shown(texts["worth"])}</p>'
    first = texts["advice"][0] if texts["advice"] else None
    if first:
        yield f'<p class="advice">{prose(first["text"])}</p>'
    if view := view_of(finding, report):
        yield (
            f'<p class="acts live"><button type="button" class="small" data-act="evidence" data-finding="{number}" '
            f'data-view="{view}">{shown(say(lang, f"page.in_{view}"))}</button></p>'
        )
    yield f"<details><summary>{shown(say(lang, 'page.why'))}</summary>{_why(finding, texts, lang)}</details></div>"
    yield f"{_snippet(first['snippet'], lang) if first else ''}</div></li>"


def _gain(finding: Finding, report: Report, lang: str) -> str:
    """Return what the finding is worth, as a range of time and of the step."""
    low, high = finding.gain.low, finding.gain.high
    if high < NOTHING_SHARE:
        saved = saved_memory(finding, " … ")
        return f"<b>{shown(saved)}</b>" if saved else f"<span>{shown(say(lang, 'page.no_gain'))}</span>"
    step_ns = report.run.get("step_ns") or 0
    same = format_share(low) == format_share(high)
    share = f"−{format_share(high)}" if same else f"−{format_share(low).removesuffix(' %')} … {format_share(high)}"
    times = format_ns(high * step_ns) if same else f"{format_ns(low * step_ns)} … {format_ns(high * step_ns)}"
    return f"<b>{share}</b> <span>{shown(times) if step_ns else ''}</span>"


def _places(location: Location) -> list[str]:
    parts = [place(location.file, location.line, location.function), location.module or "", location.op or ""]
    if location.rank is not None:
        parts.append(f"rank {location.rank}")
    return [part for part in parts if part]


def _snippet(text: str, lang: str) -> str:
    if not text:
        return ""
    # Snippets keep their line breaks, which `printable` would spell out.
    code = "\n".join(shown(line.replace("\t", "    ")) for line in text.splitlines())
    button = f'<button type="button" class="small live" data-act="copy">{shown(say(lang, "page.copy"))}</button>'
    return f'<div class="snippet"><pre tabindex="0"><code>{code}</code></pre>{button}</div>'


def _why(finding: Finding, texts: dict[str, Any], lang: str) -> str:
    parts = [f"<p>{prose(texts['because'])}</p>"]
    if finding.evidence:
        parts.append(
            '<table class="evidence">' + "".join(_evidence(one, lang) for one in finding.evidence) + "</table>"
        )
    confidence = say(lang, "ui.confidence", {"confidence_share": finding.confidence})
    parts.append(f'<p class="muted">{shown(confidence)} · <code>uncork explain {shown(finding.rule)}</code></p>')
    for number, one in enumerate(texts["advice"]):
        if number:
            parts.append(f'<p class="advice">{prose(one["text"])}</p>{_snippet(one["snippet"], lang)}')
        parts.extend(
            f'<p class="muted"><b>{shown(say(lang, f"page.advice.{key}"))}</b> {prose(one[key])}</p>'
            for key in ("effort", "risk", "check")
            if one[key]
        )
    return "".join(parts)


def _evidence(one: Evidence, lang: str, of: str = "") -> str:
    mark, key = {True: ("✓", "holds"), False: ("✗", "fails"), None: ("·", "plain")}[one.holds]
    limit = "" if one.threshold is None else f"{one.relation} {format_quantity(one.unit_name, one.threshold)}"
    return (
        f'<tr class="{key}"><td title="{shown(say(lang, f"page.evidence.{key}"))}">{mark}</td>'
        + (f"<td>{shown(of)}</td>" if of else "")
        + f'<th scope="row">{shown(say(lang, f"metric.{one.metric}"))}</th>'
        f"<td>{shown(format_quantity(one.unit_name, one.value))}</td><td>{shown(limit)}</td></tr>"
    )


def _rest(report: Report, lang: str) -> Iterator[str]:
    """Yield what was checked and is fine, and what could not be looked at, why, and how to record it."""
    yield '<div class="rest">'
    if report.clear:
        title = say(lang, "page.clear", {"count": len(report.clear)})
        named = _BETWEEN.join(shown(rule) for rule in report.clear[:_MOST_NAMED])
        yield f"<section><h2>{shown(title)}</h2><p>{named}</p>"
        if more := report.clear[_MOST_NAMED:]:
            label = say(lang, "page.and_more", {"count": len(more)})
            names = _BETWEEN.join(shown(rule) for rule in more)
            yield f"<details><summary>{shown(label)}</summary><p>{names}</p></details>"
        yield "</section>"
    yield from _not_assessed(report, lang)
    yield "</div>"


def _not_assessed(report: Report, lang: str) -> Iterator[str]:
    """Yield what the recording lacks, what for, and how to record it, what most rules lack first."""
    lacks = [lack for lack in report.not_assessed if report.applies(lack)]
    beyond = len(report.not_assessed) - len(lacks)
    if not lacks and not beyond:
        return
    yield f'<section class="lacks"><h2>{shown(say(lang, "page.not_assessed", {"count": len(lacks)}))}</h2><ul>'
    waiting: dict[str, list[str]] = {}
    for lack in lacks:
        for what in lack.missing:
            waiting.setdefault(what, []).append(lack.rule)
    for what, rules in sorted(waiting.items(), key=lambda item: -len(item[1])):
        missing, how = say(lang, f"missing.{what}"), report.how_to_record(what, lang)
        for_rules = say(lang, "page.lack_of", {"rules": _few(rules, lang)})
        yield f'<li title="{shown(", ".join(rules))}"><b>{shown(missing)}</b>{shown(for_rules)}'
        yield f" <span>{prose(how)}</span></li>"
    if beyond:
        yield f"<li>{shown(say(lang, 'page.beyond', {'count': beyond}))}</li>"
    yield "</ul></section>"


def _few(rules: list[str], lang: str) -> str:
    """Return one or two rules by name, more as their number; the JSON report names all."""
    return ", ".join(rules) if len(rules) <= _FEW else say(lang, "page.rules", {"count": len(rules)})


def _fill(cause: str) -> str:
    fills = palette()["fills"]
    found: str = fills.get(cause, fills["unknown"])
    return found


def _idle_class(cause: str) -> str:
    return " idle" if cause in palette()["idle"] else ""
