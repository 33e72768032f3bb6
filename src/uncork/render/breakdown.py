"""Breakdown: what a step, or memory at its peak, is made of, as a bar with its parts named beside it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from uncork.locale import say
from uncork.records import dataclass
from uncork.render.markup import prose, shown
from uncork.render.tables import divided_step, step_facts
from uncork.report import LedgerEntry, Report
from uncork.units import format_bytes, format_ns, format_share

_SMALL_PART = 0.005
_MOST_PARTS = 8
_BAR_WIDTH = 1_000
_P95_STEPS = 20
"""In fewer steps no twentieth of them is longer than the 95th percentile."""


@dataclass(frozen=True)
class _Part:
    """A part of the whole.

    Args:
        name: What it is called.
        share: Of the whole.
        size: How much, spelt.
        fill: Its colour.
        idle: Whether it is waiting.
    """

    name: str
    share: float
    size: str
    fill: str
    idle: bool = False


@cache
def palette() -> dict[str, Any]:
    """Return the colours that the page and its first screen share."""
    text = resources.files(__package__).joinpath("palette.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def breakdown(report: Report, lang: str) -> Iterator[str]:
    """Yield where a step goes; of a recording of memory alone, who held it at the peak."""
    if report.ledger:
        yield from _step(report, lang)
    elif report.memory and report.memory.get("categories"):
        yield from _held(report.memory, lang)


def _step(report: Report, lang: str) -> Iterator[str]:
    run = report.run
    title = say(lang, "ui.step_goes" if run.get("marked_steps") else "ui.window_goes")
    parts = [_cause(entry, lang) for entry in report.ledger]
    worth = [entry for entry in report.ledger if entry.share >= _SMALL_PART][:_MOST_PARTS]
    rest = [entry for entry in report.ledger if entry not in worth]
    rows = [_cause(entry, lang) for entry in worth]
    if rest:
        name = say(lang, "ui.small_causes", {"count": len(rest)}) if len(rest) > 1 else _cause(rest[0], lang).name
        rows.append(_Part(name, sum(one.share for one in rest), format_ns(sum(one.ns_per_step for one in rest)), ""))
    yield '<section class="ledger">'
    whole = divided_step(run, run.get("step_ns") or 0, lang)
    yield f"<h2>{shown(title)} <small>{shown(whole)}</small>{_key(parts, lang)}</h2>"
    # Work before waiting, each the largest first.
    yield from _bar(sorted(parts, key=lambda part: (part.idle, -part.share)), title, lang)
    yield from _rows(rows)
    if usual := report.usual_step(lang):
        yield f'<p class="muted">{prose(usual)}</p>'
    yield f'<p class="muted">{shown(" · ".join(_step_facts(report, lang)))}</p></section>'


def _held(memory: Mapping[str, Any], lang: str) -> Iterator[str]:
    title, owners = say(lang, "page.memory.at_peak"), palette()["owners"]
    parts = [
        _Part(
            say(lang, f"memory.category.{one['category']}"),
            one["share"],
            format_bytes(one["bytes"]),
            owners.get(one["category"], owners["unknown"]),
        )
        for one in memory["categories"]
    ]
    peak = memory.get("peak_bytes")
    yield '<section class="ledger">'
    yield f"<h2>{shown(title)}{f' <small>{format_bytes(peak)}</small>' if peak else ''}</h2>"
    yield from _bar(parts, title, lang)
    yield from _rows([part for part in parts if part.share >= _SMALL_PART] or parts)
    yield "</section>"


def _cause(entry: LedgerEntry, lang: str) -> _Part:
    fills = palette()["fills"]
    name, fill = say(lang, f"cause.{entry.cause}"), fills.get(entry.cause, fills["unknown"])
    return _Part(name, entry.share, format_ns(entry.ns_per_step), fill, entry.cause in palette()["idle"])


def _key(parts: Sequence[_Part], lang: str) -> str:
    """Return what plain and hatched fills mean, where both are seen."""
    if len({part.idle for part in parts if part.share >= _SMALL_PART}) < 2:
        return ""
    return (
        f'<small class="key"><i class="swatch"></i>{shown(say(lang, "page.work"))} '
        f'<i class="swatch idle"></i>{shown(say(lang, "page.waiting"))}</small>'
    )


def _bar(parts: Sequence[_Part], title: str, lang: str) -> Iterator[str]:
    """Yield the parts side by side; colour is never the only carrier."""
    spelt = ", ".join(f"{part.name} {format_share(part.share)}" for part in parts[:_MOST_PARTS])
    yield f'<svg class="stack" viewBox="0 0 {_BAR_WIDTH} 30" preserveAspectRatio="none" role="img"'
    yield f' aria-label="{shown(title)}: {shown(spelt)}">'
    yield (
        f'<defs><pattern id="hatch-{lang}" width="9" height="9" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><rect width="3" height="9" class="hatch-line"/></pattern></defs>'
    )
    x = 0.0
    for part in parts:
        wide = part.share * _BAR_WIDTH
        for fill in (part.fill, f"url(#hatch-{lang})") if part.idle else (part.fill,):
            yield f'<rect x="{x:.2f}" width="{wide:.2f}" height="30" fill="{fill}">'
            yield f"<title>{shown(f'{part.name} {format_share(part.share)}')}</title></rect>"
        yield f'<rect x="{x:.2f}" width="1.5" height="30" class="edge"/>'
        x += wide
    yield "</svg>"


def _rows(parts: Sequence[_Part]) -> Iterator[str]:
    yield "<ol>"
    for part in parts:
        swatch = f'<i class="swatch{" idle" if part.idle else ""}" style="background:{part.fill}"></i>'
        yield (
            f"<li>{swatch if part.fill else '<i></i>'}<span>{shown(part.name)}</span>"
            f"<b>{shown(part.size)}</b><b>{shown(format_share(part.share))}</b></li>"
        )
    yield "</ol>"


def _step_facts(report: Report, lang: str) -> list[str]:
    run = report.run
    facts = step_facts(run, lang)
    if run.get("p95_step_ns") and run.get("marked_steps") and run.get("steps", 0) >= _P95_STEPS:
        facts.append(f"p95 {format_ns(run['p95_step_ns'])}")
    if run.get("busy_share") is not None:
        key = "page.busy" if run.get("on_device") else "page.busy_cpu"
        facts.append(say(lang, key, {"busy_share": run["busy_share"]}))
    return facts
