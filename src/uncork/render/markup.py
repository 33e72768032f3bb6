"""Markup: a report's texts as HTML, with lines that end where a reader would end them."""

import re
from html import escape

from uncork.measure.views.names import printable

_CODE = re.compile(r"`([^`]+)`")
# Browsers end a line between a number and its unit, and after the hyphens of a command's option.
_NUMBER = re.compile(r"[\d.,]+ (?:%|[nµm]?s|B|[KMGT]iB)(?!\w)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*(?: [A-Z]\b)?")
_KEPT = r'<span class="kept">\g<0></span>'
_LONG_NAME = re.compile(r"[!-%'-:=?-~]{40,}")
"""Code of this length, escapes left out, is wider than the narrowest column; shorter moves to the next line."""
JOINT = re.compile(r"(?<=[\w)\]])([._/=,(])(?=\w)")
"""Where a name that is too long for its line may be parted, after the sign."""


def shown(text: object) -> str:
    """Return text that HTML shows as it is; marks of direction and controls are spelt out."""
    return escape(printable(str(text)))


def code(text: str) -> str:
    """Return code as HTML: a line may end at a joint of a long name, not in the middle of a word or an option."""
    return _OPTION.sub(_KEPT, _LONG_NAME.sub(lambda found: JOINT.sub(r"\1<wbr>", found[0]), shown(text)))


def prose(text: str) -> str:
    """Return a text of ours as HTML: what stands between backticks is code, numbers keep their units beside them."""
    return _CODE.sub(r"<code>\1</code>", _NUMBER.sub(_KEPT, code(text)))
