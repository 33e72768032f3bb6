"""Lines: rich's text, whose lines end where a reader would end them, in Chinese too."""

import re

from rich.cells import cell_len
from rich.console import Console, JustifyMethod, OverflowMethod
from rich.containers import Lines
from rich.text import Text as RichText

from uncork.render.markup import JOINT

NARROW = 60
"""In a terminal of fewer columns, what stands side by side elsewhere stands one below the other."""
_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_CLOSING = "，。；：！？）、」』》】”’…%"
_OPENING = "（「『《【“‘"
# Where a character of Chinese stands on either side, but before no closing sign, after no opening one.
_MAY_END = re.compile(
    rf"(?<=[{_WIDE}])(?<![{_OPENING}])(?=[^\s{_CLOSING}])|(?<=[^\s{_OPENING}])(?=[{_WIDE}])(?![{_CLOSING}])"
)
_WORD = re.compile(r"[!-~]+[^\s!-~]?")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|B|[KMGT]iB)(?!\w))")
# To rich: white space of no width, and a character like others. Neither is of any text.
_MARK, _KEPT = "\x1f", "\ue000"


class Text(RichText):
    """Text for a terminal; rich takes a sentence in Chinese for one word, and a unit for another than its number."""

    last = 0
    """So many characters at the end stay on one line: a label."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        """Return the lines of the text, none wider than `width`."""
        text = self.copy()
        if not no_wrap and _MARK not in self.plain and _KEPT not in self.plain:
            head, label = self.plain[: len(self) - self.last], self.plain[len(self) - self.last :]
            text.plain = _UNIT.sub(_KEPT, head) + label.replace(" ", _KEPT)
            between = RichText(_MARK, self.style, justify=self.justify, overflow=self.overflow)
            text = between.join(text.divide(one for one in _places(text.plain, width) if one <= len(head)))
        lines = RichText.wrap(
            text, console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=no_wrap
        )
        return Lines(_unmarked(line) for line in lines)


def _places(text: str, width: int) -> list[int]:
    """Return where lines may end beside white space: in Chinese, and at the joints of names wider than a line."""
    places = {found.start() for found in _MAY_END.finditer(text)}
    for word in _WORD.finditer(text):
        if cell_len(word[0]) > width:
            places.update(found.end() for found in JOINT.finditer(text, word.start(), word.end()))
    return sorted(places)


def _unmarked(line: RichText) -> RichText:
    """Return a line without the marks that ended it."""
    whole = line.blank_copy().join(line.split(_MARK)) if _MARK in line.plain else line
    whole.plain = whole.plain.replace(_KEPT, " ")
    return whole
