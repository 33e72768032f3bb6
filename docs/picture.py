"""Draw the README's picture from a real report: ``python docs/picture.py RUN_FOLDER docs/verdict.svg [LANG]``."""

import re
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from uncork.pipeline import analyze
from uncork.render import Options, renderers

WIDTH = 100


def picture(run: Path, lang: str) -> str:
    """Return the terminal report of a run as SVG, without the fonts that rich would have fetched from elsewhere."""
    options = Options(lang=lang, width=WIDTH, color=True, run=f"uncork analyze {run.name}")
    shown = renderers()["terminal"](analyze([run]), options)
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(title="uncork run train.py")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    _, source, target, *rest = sys.argv
    Path(target).write_text(picture(Path(source), rest[0] if rest else "en"), "utf-8")
