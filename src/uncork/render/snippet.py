"""Snippet: code to paste, its long lines broken where Python and shells allow it."""

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions

from uncork.records import dataclass
from uncork.render.lines import Text

_PIECE = re.compile(
    r"""(?P<string>"[^"]*"|'[^']*')|(?P<open>(?<!\$)[(\[{])|(?P<close>[)\]}])|(?P<blank> +)|(?P<remark>#)"""
)
_INDENT = "    "
_LEAST_WIDTH = 20


@dataclass(frozen=True)
class Snippet:
    """A snippet for a terminal: what is copied from the screen still runs.

    Args:
        code: Python or shell.
        style: How rich shows it.
    """

    code: str
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield its lines, none wider than there is room for."""
        width = max(options.max_width, _LEAST_WIDTH)
        for line in self.code.splitlines():
            for part in [line] if cell_len(line) <= width else _broken(line, width, console):
                yield Text(part, style=self.style, overflow="fold")


def _broken(line: str, width: int, console: Console) -> Iterator[str]:
    """Yield a long line in parts: its remark above it, then the code."""
    code = line.lstrip()
    indent = line[: len(line) - len(code)]
    remark = next((piece.start() for piece in _PIECE.finditer(code) if piece["remark"]), len(code))
    if code[remark:]:
        lines = Text(code[remark:].lstrip("# ")).wrap(console, width - len(indent) - 2)
        yield from (f"{indent}# {part.plain.rstrip()}" for part in lines)
    if code[:remark].strip():
        yield from _cut(code[:remark].rstrip(), indent, width)


def _cut(code: str, indent: str, width: int) -> Iterator[str]:
    """Yield code cut inside brackets where it can be, else at a blank, which asks for a backslash."""
    depth, first = 0, indent
    while cell_len(indent + code) > width:
        inside, outside = _places(code, depth, width - len(indent))
        at, depth = inside if inside[0] else (outside, 0)
        if not at:
            break  # a string or a name wider than the room
        yield indent + code[:at].rstrip() + ("" if inside[0] else " \\")
        code, indent = code[at:], first + _INDENT
    yield indent + code


def _places(code: str, depth: int, room: int) -> tuple[tuple[int, int], int]:
    """Return the last place within brackets where code can be cut, with its depth, and the last outside of any."""
    inside, outside = (0, 0), 0
    for piece in _PIECE.finditer(code):
        depth += bool(piece["open"]) - bool(piece["close"])
        end = piece.start() if piece["blank"] else piece.end()  # a blank at the line's end takes no room
        if end > room:
            break
        if depth > 0 and (piece["open"] or piece["blank"]):
            inside = piece.end(), depth
        elif piece["blank"] and end + 2 <= room:
            outside = piece.end()
    return inside, outside
