"""mend: one damaged event's text → the same event in valid JSON, or nothing where it cannot be told what was meant."""

import re
from collections import Counter

FIELDS = "ph|cat|name|pid|tid|ts|dur|id|bp|s|args|tts|tdur|cname|sf|bind_id|flow_in|flow_out|sort_index"
"""The keys an event of the trace format has; where quotes lie, only these are believed to follow one another."""

_SPACE = re.compile(r"[\s]*")
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:', re.DOTALL)
_KEY_WITHOUT_QUOTES = re.compile(r'"?([A-Za-z_@][\w .@/()-]*?)"?\s*:')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?=[\s,\]}])")
_WORD = re.compile(r'[^\s,\]}\["{:]+')
_LITERAL = re.compile(r"(?:true|false|null)(?=[\s,\]}])")
_ENDS_FIELD = re.compile(rf'\s*(?:,\s*"?(?:{FIELDS})"\s*:|\}}\s*(?:[,\]]|$))')
_ENDS_ARG = re.compile(r'\s*(?:,\s*"[^"\n]*"\s*:|\}\s*(?:[,\]}]|$))')
_ENDS_ITEM = re.compile(r"\s*[,\]]")
_ESCAPED_PAIR = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_LONE_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_DEEPEST = 64


class _UnclearError(Exception):
    """It cannot be told what was meant."""


def mend(text: str, *, quotes_hold: bool = False) -> tuple[str, int, Counter[str]] | None:
    """Return an event's valid JSON, how much of the text it took, and what was repaired; or None.

    Args:
        text: The text from the event's opening brace on.
        quotes_hold: The quotes are known to be right; only what stands between them may be wrong.
    """
    work = _Mender(text, quotes_hold=quotes_hold)
    try:
        work.value(0, _ENDS_FIELD)
    except _UnclearError:
        return None
    return "".join(work.out), work.at, work.repairs


class _Mender:
    """A reader of almost-JSON that writes JSON."""

    def __init__(self, text: str, *, quotes_hold: bool) -> None:
        self.text = text
        self.quotes_hold = quotes_hold
        self.at = 0
        self.out: list[str] = []
        self.repairs: Counter[str] = Counter()

    def value(self, depth: int, ends: re.Pattern[str]) -> None:
        """Copy one value, mended."""
        if depth > _DEEPEST:
            raise _UnclearError
        first = self._peek()
        if first == "{":
            self._object(depth)
        elif first == "[":
            self._array(depth)
        elif first == '"':
            self._string(ends)
        elif found := _NUMBER.match(self.text, self.at) or _LITERAL.match(self.text, self.at):
            self.out.append(found[0])
            self.at = found.end()
        elif found := _WORD.match(self.text, self.at):
            self.repairs["bare_words"] += 1
            self.out.append(_quoted(found[0]))
            self.at = found.end()
        else:
            raise _UnclearError

    def _peek(self) -> str:
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def _object(self, depth: int) -> None:
        self.at += 1
        self.out.append("{")
        ends = _ENDS_FIELD if depth == 0 else _ENDS_ARG
        first = True
        while self._peek() != "}":
            if not first:
                self.out.append(",")
            self._key()
            self.out.append(":")
            self.value(depth + 1, ends)
            first = False
            self._comma("}")
        self.at += 1
        self.out.append("}")

    def _array(self, depth: int) -> None:
        self.at += 1
        self.out.append("[")
        first = True
        while self._peek() != "]":
            if not first:
                self.out.append(",")
            self.value(depth + 1, _ENDS_ITEM)
            first = False
            self._comma("]")
        self.at += 1
        self.out.append("]")

    def _comma(self, close: str) -> None:
        """Step over what stands between two values: one comma, or more by mistake, or the end."""
        commas = 0
        while self._peek() == ",":
            self.at += 1
            commas += 1
        if (commas == 0) != (self._peek() == close):
            if commas == 0:
                raise _UnclearError
            self.repairs["commas"] += 1
        elif commas > 1:
            self.repairs["commas"] += 1

    def _key(self) -> None:
        found = _KEY.match(self.text, self.at)
        if found is None:
            found = _KEY_WITHOUT_QUOTES.match(self.text, self.at)
            self.repairs["quotes"] += 1
        if found is None:
            raise _UnclearError
        self.out.append(self._inside(found[1]))
        self.at = found.end()

    def _string(self, ends: re.Pattern[str]) -> None:
        start = self.at + 1
        end = self._string_end(start, ends)
        self.out.append(self._inside(self.text[start:end]))
        self.at = end + 1

    def _string_end(self, start: int, ends: re.Pattern[str]) -> int:
        """Return where the string closes: at the first quote after which the event goes on as events do."""
        escaped_ends: list[int] = []
        place = self.text.find('"', start)
        while place >= 0:
            if self.quotes_hold or ends.match(self.text, place + 1):
                behind = self.text[start:place]
                if (len(behind) - len(behind.rstrip("\\"))) % 2 == 0:
                    return place
                escaped_ends.append(place)
            place = self.text.find('"', place + 1)
        if not escaped_ends:
            raise _UnclearError
        return escaped_ends[0]

    def _inside(self, inside: str) -> str:
        """Return a string literal whose inside is legal JSON."""
        pieces: list[str] = []
        at = 0
        for pair in _ESCAPED_PAIR.finditer(inside):
            pieces += [self._plain(inside[at : pair.start()]), pair[0]]
            at = pair.end()
        pieces.append(self._plain(inside[at:]))
        joined, lone = _LONE_SURROGATE.subn(r"\\ufffd", "".join(pieces))
        self.repairs["invalid_utf8"] += lone
        return f'"{joined}"'

    def _plain(self, piece: str) -> str:
        """Return a stretch without legal escapes, with what needs one escaped."""
        if "\\" in piece:
            self.repairs["backslashes"] += piece.count("\\")
            piece = piece.replace("\\", "\\\\")
        if '"' in piece:
            self.repairs["quotes"] += 1
            piece = piece.replace('"', '\\"')
        if _CONTROL.search(piece):
            self.repairs["control_characters"] += 1
            piece = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", piece)
        return piece


def _quoted(word: str) -> str:
    """Return a bare word as a string."""
    return '"' + word.replace("\\", "\\\\") + '"'
