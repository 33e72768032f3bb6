"""The page's first screen as static HTML: readable without JavaScript, printable, everything escaped."""

from collections.abc import Iterator
from typing import Any

from uncork.findings import CLASSES, Bottleneck, Evidence, Finding, Location, Verdict
from uncork.locale import say
from uncork.render.about_run import notes
from uncork.render.breakdown import breakdown
from uncork.render.evidence import view_of
from uncork.render.markup import code, prose, shown
from uncork.render.tables import NOTHING_SHARE, place, saved_memory
from uncork.report import Report, finding_texts, spell
from uncork.units import format_ns, format_quantity, format_share

_MOST_OPEN = 3
_MOST_NAMED = 12
_FEW = 2
_BETWEEN = "\u00a0· "  # a line may end after the point, not begin with it


def first_screen(report: Report, lang: str) -> str:
    """Return the first screen in one language."""
    return "\n".join(
        [
            '<div class="verdict">',
            *_verdict(report, lang),
            *breakdown(report, lang),
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
    yield f"<h1>{prose(spell(verdict.summary, lang))}</h1>"
    if verdict.bottleneck is not Bottleneck.UNDETERMINED:
        yield from _confidence(verdict, lang)
    if verdict.would_be_wrong_if:
        yield f'<div class="wrong"><h2>{shown(say(lang, "ui.wrong_if"))}</h2><ul>'
        yield from (f"<li>{prose(spell(one, lang))}</li>" for one in verdict.would_be_wrong_if)
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
    yield from (f'<p class="wrong">{prose(spell(one, lang))}</p>' for one in verdict.disagreements)
    if verdict.evidence:
        yield f'<details class="thresholds"><summary>{shown(say(lang, "ui.thresholds"))}</summary>'
        yield '<table class="evidence">'
        for one in verdict.evidence:
            yield _evidence(one.evidence, lang, say(lang, f"class.{one.bottleneck.value}"))
        yield "</table></details>"


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
    # Remarks on the recording itself have no class.
    name = say(lang, f"class.{finding.bottleneck.value}") if finding.bottleneck in CLASSES else ""
    of_class = f' <small class="class">{shown(name)}</small>' if name else ""
    yield f"<h3>{prose(texts['title'])}{of_class}</h3>"
    yield f'<p class="gain">{_gain(finding, report, lang)}</p></div><div class="body">'
    yield "<div>"
    places = _places(finding.location)
    if places:
        yield '<p class="places">' + " ".join(f"<code><bdi>{code(one)}</bdi></code>" for one in places) + "</p>"
    if texts["worth"]:
        yield f'<p class="muted">{prose(texts["worth"])}</p>'
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
    """Return what the finding is worth, as a range of the step and of time, or of memory."""
    low, high = finding.gain.low, finding.gain.high
    if high < NOTHING_SHARE:
        saved = saved_memory(finding, " … ").removeprefix("−")
        spelt, times, nothing = saved.removeprefix("0 … "), "", saved.startswith("0 … ")
    else:
        nothing, step_ns = low < NOTHING_SHARE, report.run.get("step_ns") or 0
        least = high if nothing else low
        spelt = _range(format_share(least), format_share(high))
        times = _range(format_ns(least * step_ns), format_ns(high * step_ns)) if step_ns else ""
    if not spelt:
        return f"<span>{shown(say(lang, 'page.no_gain'))}</span>"
    saves = say(lang, "page.saves_up_to" if nothing else "page.saves")
    return f"<small>{shown(saves)}</small> <b>{shown(spelt)}</b>" + (f" <span>{shown(times)}</span>" if times else "")


def _range(low: str, high: str) -> str:
    """Return two figures as one, a unit that both share once: ``3.02 … 6.04 s``."""
    value, _, unit = low.rpartition(" ")
    return high if low == high else f"{value if high.endswith(f' {unit}') else low} … {high}"


def _places(location: Location) -> list[str]:
    parts = [place(location.file, location.line, location.function), location.module or "", location.op or ""]
    if location.rank is not None:
        parts.append(f"rank {location.rank}")
    return [part for part in parts if part]


def _snippet(text: str, lang: str) -> str:
    if not text:
        return ""
    # Snippets keep their line breaks, which `printable` would spell out.
    lines = "\n".join(code(line.replace("\t", "    ")) for line in text.splitlines())
    button = f'<button type="button" class="small live" data-act="copy">{shown(say(lang, "page.copy"))}</button>'
    return f'<div class="snippet"><pre tabindex="0"><code>{lines}</code></pre>{button}</div>'


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
