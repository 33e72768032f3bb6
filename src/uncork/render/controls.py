"""Control characters that a recording brings along are shown, so that no terminal obeys them."""

import re
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments

# Everything below a blank but line ends and tabs, DEL, the C1 set, and marks that turn the direction of writing.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PICTURES = 0x2400
"""Unicode's pictures of the control characters: ESC becomes ␛."""


def shown(text: str) -> str:
    """Return a text with its control characters replaced by pictures of them."""
    return _CONTROL.sub(lambda found: chr(_PICTURES + ord(found[0])) if ord(found[0]) < 32 else "\ufffd", text)


def print_parts(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print parts one below the other: the console's own colours stay, control characters in their texts are shown."""
    for part in parts:
        segments = [Segment(shown(one.text), one.style, one.control) for one in console.render(part)]
        console.print(Segments(segments), end="")
