"""Draw the README's picture from a real run: ``python docs/picture.py RUN_FOLDER docs/verdict.svg [zh]``."""

import html
import re
import sys
from io import StringIO
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from uncork.pipeline import analyze
from uncork.render import Options, renderers

WIDTH = 100
CELL = 12.2
"""Width of a character in rich's pictures."""
FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
TEXT = re.compile(r'(<text [^>]*?x="([\d.]+)"[^>]*?textLength=")([\d.]+)("[^>]*>)([^<]*)(</text>)')
RUN = re.compile(r"[\u2e80-\uffff]+|[^\u2e80-\uffff]+")
BACKGROUND = re.compile(r'(<rect [^>]*?x="([\d.]+)"[^>]*?width=")([\d.]+)(")')


def picture(run: Path, lang: str) -> str:
    """Return the terminal report of a run as SVG."""
    options = Options(lang=lang, width=WIDTH, color=True, run="uncork-runs/slow-1")
    shown = renderers()["terminal"](analyze([run]), options)
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    # rich would have fonts fetched from elsewhere, and draws wide characters narrow.
    svg = FONT.sub("", console.export_svg(title="uncork run slow.py"))
    widths: dict[tuple[str, str], str] = {}

    def widen(found: "re.Match[str]") -> str:
        text, begin, runs = html.unescape(found[5]), float(found[2]), []
        widths[found[2], found[3]] = f"{CELL * cell_len(text):g}"
        # Each run of wide or of narrow characters has its own place: then columns stand below each other.
        for part in RUN.findall(text):
            head = found[1].replace(f'x="{found[2]}"', f'x="{begin:g}"', 1)
            spelt = html.escape(part).replace("\xa0", "&#160;")
            runs.append(f"{head}{CELL * cell_len(part):g}{found[4]}{spelt}{found[6]}")
            begin += CELL * cell_len(part)
        return "".join(runs)

    svg = TEXT.sub(widen, svg)
    return BACKGROUND.sub(lambda found: f"{found[1]}{widths.get((found[2], found[3]), found[3])}{found[4]}", svg)


if __name__ == "__main__":
    _, source, target, *rest = sys.argv
    Path(target).write_text(picture(Path(source), rest[0] if rest else "en"), "utf-8")
