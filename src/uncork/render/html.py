"""HTML: the report as one file that needs no network: a static first screen, then timeline, flame graph and tables."""

import base64
import hashlib
from functools import cache
from importlib import resources

from uncork import __version__
from uncork.compare import Comparison
from uncork.locale import LANGUAGES, say
from uncork.measure.views.flame_view import FlameView
from uncork.measure.views.timeline_view import TimelineView
from uncork.render import Options
from uncork.render.comparison import comparison_cautions, comparison_notes
from uncork.render.first_screen import first_screen
from uncork.render.markup import prose, shown
from uncork.render.page_data import as_script, page_data, ranks_of_page
from uncork.report import Report, spell

# Before the first paint: the reader's theme and language, so that nothing flashes.
_EARLY = (
    "(()=>{const r=document.documentElement,g=k=>{try{return localStorage.getItem(k)}catch{return null}};"
    "r.classList.add('live');"
    "r.dataset.theme=g('uncork-theme')||(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');"
    "const l=g('uncork-language');if(l)r.lang=l==='zh'?'zh-Hans':'en'})()"
)


def render(report: Report, options: Options) -> str:
    """Return the report as one HTML document in both languages, beginning in the one asked for."""
    return _document(report, options, None)


def render_served(report: Report, options: Options) -> str:
    """Return the report as a page that may ask the server it comes from, and nobody else, for more."""
    return _document(report, options, None, served=True)


def render_at(view: str, report: Report, options: Options) -> str:
    """Return the report as a page that opens at one of its views."""
    return _document(report, options, None, view=view)


def render_compared(after: Report, comparison: Comparison, options: Options) -> str:
    """Return the report of a program as it is now, with what changed since before as its first view."""
    return _document(after, options, comparison)


def _document(
    report: Report, options: Options, comparison: Comparison | None, *, served: bool = False, view: str = ""
) -> str:
    bundle, style = asset("app.js"), asset("style.css")
    data = {**page_data(report, comparison, options.run), "served": served, "view": view}
    parts = [
        "<!doctype html>",
        f'<html lang="{"zh-Hans" if options.lang == "zh" else "en"}">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(served, _EARLY, bundle)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f'<meta name="generator" content="uncork {__version__}">',
        f"<title>{shown(_title(report, options.lang))}</title>",
        f"<style>{style}</style>",
        f"<script>{_EARLY}</script>",
        "</head>",
        "<body>",
        _header(report),
        "<main>",
        *(_in_language(lang, _compared(comparison, lang) + first_screen(report, lang)) for lang in LANGUAGES),
        '<section id="views">',
        '<div id="app"><noscript>',
        *(f'<p class="empty" data-lang="{lang}">{shown(say(lang, "page.needs_script"))}</p>' for lang in LANGUAGES),
        "</noscript></div>",
        "</section>",
        "</main>",
        *_blocks(report),
        f'<script type="application/json" id="page-data">{as_script(data)}</script>',
        f"<script>{bundle}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


@cache
def asset(name: str) -> str:
    """Return a file of the built front end.

    Raises:
        FileNotFoundError: The package was made without it (frontend: ``npm ci && npm run build``).
    """
    text = resources.files(__package__).joinpath("web", name).read_text("utf-8").strip()
    if "</script" in text or "</style" in text:
        raise ValueError(f"{name} would end the element it stands in")
    return text


def _policy(served: bool, *scripts: str) -> str:
    """Return a content security policy that runs these scripts only, and lets nothing in from outside."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    own = "connect-src 'self'; " if served else ""
    return f"default-src 'none'; script-src {hashes}; {own}{rest}"


def _compared(comparison: Comparison | None, lang: str) -> str:
    """Return the sentence of a comparison for the head of the first screen, or nothing."""
    if comparison is None:
        return ""
    notes = [comparison_notes(comparison, lang), *comparison_cautions(comparison, lang)]
    told = "".join(f'<p class="muted">{prose(note)}</p>' for note in notes)
    return f'<section class="compared"><h2>{prose(spell(comparison.sentence, lang))}</h2>{told}</section>\n'


def _in_language(lang: str, content: str) -> str:
    return f'<div class="first" data-lang="{lang}" lang="{"zh-Hans" if lang == "zh" else "en"}">\n{content}\n</div>'


def _blocks(report: Report) -> list[str]:
    """Return the packed views of the ranks shown as script elements that no browser runs."""
    found = []
    for rank, views in ranks_of_page(report).items():
        for name, kind in (("timeline", TimelineView), ("flame", FlameView)):
            view = views.get(kind.__name__)
            if isinstance(view, (TimelineView, FlameView)):
                data = base64.b64encode(view.block).decode()
                found.append(f'<script type="application/octet-stream" id="view-{name}-{rank}">{data}</script>')
    return found


def _title(report: Report, lang: str) -> str:
    return f"{say(lang, f'class.{report.verdict.bottleneck.value}')} · {_source(report)} · uncork"


def _source(report: Report) -> str:
    command = " ".join(map(str, report.run.get("command", ())))
    files = dict.fromkeys(str(source) for source in report.run.get("sources", ()))  # one may hold several ranks
    sources = [file.replace("\\", "/").rpartition("/")[2] for file in files]
    return command or ", ".join(sources[:2]) + (" …" if len(sources) > 2 else "")


def _header(report: Report) -> str:
    run = report.run
    names = [str(one.get("name") or "") for one in run.get("devices", ())]
    device = f"{len(names)} × {names[0]}" if names and names[0] else "CPU" if run.get("on_device") is False else ""
    facts = [device, f"torch {run['versions']['torch']}" if "torch" in run.get("versions", {}) else ""]
    facts += [f"{len(run['ranks'])} ranks" if len(run.get("ranks", ())) > 1 else ""]
    spelt = " · ".join(shown(fact) for fact in facts if fact)
    return (
        f'<header><b class="logo">uncork</b><span class="source"><bdi>{shown(_source(report))}</bdi></span>'
        f'<span class="muted">{spelt}</span><span class="right live">'
        '<button type="button" data-act="charts">'
        + "".join(f'<span data-lang="{lang}">{shown(say(lang, "page.charts"))}</span>' for lang in LANGUAGES)
        + "</button>"
        '<button type="button" data-act="language"><span data-lang="en" lang="zh-Hans">中文</span>'
        '<span data-lang="zh" lang="en">English</span></button>'
        '<button type="button" data-act="theme">'
        + "".join(
            f'<span class="hidden" data-lang="{lang}">{shown(say(lang, "page.theme"))}</span>' for lang in LANGUAGES
        )
        + '<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">'
        '<circle cx="7" cy="7" r="6" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        '<path d="M7 1a6 6 0 0 1 0 12z" fill="currentColor"/></svg></button>'
        "</span></header>"
    )
