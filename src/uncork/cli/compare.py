"""``uncork compare BEFORE AFTER``: what changed."""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.cli.output import add_language, rows, spare, spare_inputs, use_color, write
from uncork.errors import UncorkError, UsageError

if TYPE_CHECKING:
    from uncork.cli.speech import Told, Verbs
    from uncork.report import Report


def add(verbs: Verbs, told: Told) -> None:
    """Add the verb to the command line."""
    verb = verbs.add_parser("compare", help=told("help.compare"), description=told("help.compare.about"))
    verb.add_argument("before", metavar="BEFORE", help=told("help.compare.side"))
    verb.add_argument("after", metavar="AFTER", help=told("help.compare.side"))
    verb.add_argument("--html", metavar="FILE", help=told("help.compare.html"))
    verb.add_argument("--json", metavar="FILE", help=told("help.compare.json"))
    verb.add_argument("--markdown", metavar="FILE", help=told("help.compare.markdown"))
    add_language(verb, told)
    verb.add_argument("--top", type=rows, default=10, metavar="N", help=told("help.compare.top"))
    verb.add_argument("-q", "--quiet", action="store_true", help=told("help.quiet"))
    verb.add_argument("--fail-if-slower", metavar="SHARE", help=told("help.compare.fail_if_slower"))
    verb.set_defaults(act=act)


def act(arguments: argparse.Namespace) -> int:
    """Print the comparison; return 1 if a gate was asked for and failed."""
    spare()
    spare_inputs(arguments, arguments.before, arguments.after)
    from uncork.compare import compare, dumps, load
    from uncork.locale import default_language, say
    from uncork.render import Options
    from uncork.render.comparison import render_comparison
    from uncork.render.comparison_markdown import render_comparison_markdown
    from uncork.render.html import render_compared

    limit = _share(arguments.fail_if_slower)
    before, after = load(Path(arguments.before)), load(Path(arguments.after))
    comparison = compare(before, after)
    lang = arguments.lang or default_language()
    if arguments.json:
        write(arguments.json, dumps(comparison, lang))
    if arguments.markdown:
        write(arguments.markdown, render_comparison_markdown(comparison, lang, top=arguments.top))
    if arguments.html:
        write(
            arguments.html, render_compared(_with_views(after, Path(arguments.after)), comparison, Options(lang=lang))
        )
    if "-" not in (arguments.json, arguments.markdown) and not arguments.quiet:
        width = max(40, shutil.get_terminal_size((100, 24)).columns)
        write("-", render_comparison(comparison, lang, top=arguments.top, width=width, color=use_color()))
    if limit is None:
        return 0
    gate = comparison.gate(limit)
    sys.stdout.flush()
    blind = gate.id == "compare.gate.failed" and comparison.noise_share is None
    doubt = f" ({say(lang, 'compare.noise_unknown')})" if blind else ""
    print(f"uncork: {say(lang, gate.id, gate.params)}{doubt}", file=sys.stderr)
    return _EXIT_CODES.get(gate.id, 0)


# A gate that could not look must not let anything pass.
_EXIT_CODES = {"compare.gate.failed": 1, "compare.gate.unknown": 2}


def _with_views(report: Report, path: Path) -> Report:
    """Return the report with what the page draws, where the recording is there and not just a saved report."""
    from uncork.pipeline import analyze

    try:
        return analyze([path], views=True)
    except UncorkError:
        return report


def _share(text: str | None) -> float | None:
    """Return ``5%`` or ``0.05`` as a share."""
    if text is None:
        return None
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = math.nan
    if not math.isfinite(share) or (share >= 1 and "%" not in text):  # a gate that could never fail; "5" for 5 %
        raise UsageError("no_share", text=text)
    return share
