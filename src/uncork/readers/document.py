"""scan: a trace document → Scanned, whatever its layout, however damaged: the walk that both scanners share."""

import json
import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Protocol

from uncork.errors import UnreadableError
from uncork.events import SURROGATE
from uncork.readers.columns import Scanned
from uncork.readers.mend import FIELDS, mend

_CHUNK_BYTES = 1 << 19
_LARGEST_VALUE_BYTES = 256 << 20
"""A single event or top-level value larger than this is refused: no recording has one."""
_FIRST_WINDOW = 4 << 10
_MEND_WINDOW = 16 << 10
"""How far a damaged event is looked at first where the next one seems to begin much later, if at all."""
_EVENT_START = re.compile(rf'(?<=[,\[}}\]])\s*\{{\s*"?(?:{FIELDS})"\s*:'.encode())
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_COMMAS = re.compile(rb"[\s,]*")
_BLANK = re.compile(rb"[\s\0]*")


class Scanner(Protocol):
    """What collects events into columns: the compiled scanner or the portable one."""

    repairs: Counter[str]

    def feed(self, text: bytes, start: int) -> int:
        """Take as many whole events as possible from a place on; return the place after them."""

    def take(self, text: bytes) -> bool:
        """Take one event given alone; return whether it could be read."""

    def finish(self, header: dict[str, object]) -> Scanned:
        """Return the columns."""


class _CutError(Exception):
    """The text ends in the middle of something."""


class Text(Protocol):
    """What a document is read from, piece by piece."""

    path: Path

    @property
    def damage(self) -> AbstractSet[str]:
        """Return what is wrong with the file itself, as kinds of repairs."""

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next piece, empty at the end."""


ReadOn = Callable[[bytes], tuple[bytes, bool]]
"""Takes plain events from a text's rest and its source on, faster than the walk; see `uncork.readers.parallel`."""


def scan(source: Text, scanner: Scanner, read_on: ReadOn | None = None) -> Scanned:
    """Return the columns of a trace document.

    Args:
        source: Gives the text.
        scanner: Gets the events.
        read_on: Takes plain events faster than the walk.
    """
    walk = _Walk(source, scanner, read_on)
    walk.document()
    return walk.finish()


def _number(text: str) -> float:
    """Return a number of the header; one too long to be meant becomes infinite."""
    return int(text) if len(text) < 40 else float(text)


_VALUE = json.JSONDecoder(strict=False, parse_int=_number)
_SPAN = json.JSONDecoder(strict=False, parse_int=len, parse_float=len, parse_constant=len)


class _Walk:
    """A place in the document, and what to do at it."""

    def __init__(self, source: Text, scanner: Scanner, read_on: ReadOn | None) -> None:
        self.source = source
        self.read_on = read_on
        self.patience = 8
        self.scanner = scanner
        self.repairs = scanner.repairs
        self.header: dict[str, object] = {}
        self.text = b""
        self.at = 0
        self.ended = False
        self.found_events = False
        self.is_open = True
        self.looked_through = b"", 0

    def finish(self) -> Scanned:
        """Return the columns of what was walked."""
        if not self.found_events:
            is_cut = self.repairs["cut_file"] and not self.repairs["header"]
            raise UnreadableError("trace_cut" if is_cut else "json_without_events", path=self.source.path)
        scanned = self.scanner.finish(self.header)
        if self.is_open and not len(scanned):  # a list may stay open, but not one in which nothing stands
            scanned.repairs["cut_file"] = 1
        return scanned

    def document(self) -> None:
        """Walk the whole document."""
        first = self._byte()
        try:
            if first == b"[":
                self.at += 1
                self.events(bare=True)
            elif first == b"{":
                self.at += 1
                self.members()
            else:
                raise UnreadableError("no_trace", path=self.source.path)
            self.after()
        except _CutError:
            self.repairs["cut_file"] = 1
        else:
            self.repairs["cut_file"] = int(self.is_open and "cut_file" in self.source.damage)
        self.repairs.update(self.source.damage - {"cut_file"})

    def _more(self) -> bool:
        """Read on; return whether there was more."""
        if self.ended:
            return False
        rest = self.text[self.at :]
        pieces = [rest]
        # As much again: what spans many pieces is not looked through for each; but no more than may be held.
        wanted = max(_CHUNK_BYTES, min(len(rest), _LARGEST_VALUE_BYTES - len(rest)))
        while wanted > 0 and not self.ended:
            piece = self.source.read(wanted)
            pieces.append(piece)
            wanted -= len(piece)
            self.ended = not piece
        self.text = b"".join(pieces)
        self.at = 0
        if len(self.text) == len(rest):
            return False
        if len(self.text) > _LARGEST_VALUE_BYTES:
            raise UnreadableError("value_too_large", path=self.source.path, most_bytes=_LARGEST_VALUE_BYTES)
        return True

    def _byte(self) -> bytes:
        """Return the next byte that is not blank, empty at the end."""
        while True:
            self.at = _BLANK.match(self.text, self.at).end()  # type: ignore[union-attr]
            if self.at < len(self.text):
                return self.text[self.at : self.at + 1]
            if not self._more():
                return b""

    def members(self) -> None:
        """Walk the members of an object until it closes, events among them."""
        while (byte := self._byte()) != b"}":
            if not byte:
                raise _CutError
            if byte == b",":
                self.at += 1
                continue
            try:
                key = self._decoded()
            except ValueError:
                key = None
            colon = self._byte()
            if not colon:
                raise _CutError
            if not isinstance(key, str) or colon != b":":
                self._find_events()
                continue
            self.at += 1
            self._member(key)
        self.at += 1

    def _member(self, key: str) -> None:
        first = self._byte()
        if key == "traceEvents" and first == b"[":
            self.at += 1
            self.events(bare=False)
        elif key == "traceEvents" and first == b"{":
            self.at += 1
            self.repairs["nested_wrapper"] += 1
            self.members()
        else:
            try:
                self.header[key] = _whole(self._decoded())
            except ValueError:
                self._find_events()

    def _find_events(self) -> None:
        """Go on at the events, past a part of the header that is damaged beyond reading."""
        self.repairs["header"] += 1
        while (found := _EVENTS_KEY.search(self.text, self.at)) is None:
            if not self._more():
                self.at = len(self.text)
                raise _CutError
        self.at = found.end()
        self.events(bare=False)

    def _decoded(self) -> object:
        """Return the value that begins here, having read as far as it goes."""
        window = _FIRST_WINDOW
        while True:
            text = self.text[self.at : self.at + window].decode("utf-8", "surrogateescape")
            try:
                value, end = _VALUE.raw_decode(text)
            except RecursionError as error:
                raise ValueError("nested too deeply") from error
            except json.JSONDecodeError as error:
                if not _ran_out(error, text):
                    raise
                end = len(text)
                value = None
            whole = self.at + window >= len(self.text)
            if end < len(text):
                self.at += len(text[:end].encode("utf-8", "surrogateescape"))
                return value
            if whole and not self._more():
                if value is None and text.strip() != "null":
                    raise _CutError
                self.at = len(self.text)
                return value
            window *= 4

    def events(self, *, bare: bool) -> None:
        """Walk the list of events to its end.

        Args:
            bare: The document is the list alone; its closing bracket may be missing.
        """
        self.found_events = True
        while True:
            self.at = self.scanner.feed(self.text, self.at)
            self._read_on()
            byte = self._byte()
            if not byte:
                if bare:
                    return
                raise _CutError
            if byte == b",":
                commas = _COMMAS.match(self.text, self.at)
                self.at = commas.end() if commas else self.at + 1
                if (commas and commas[0].count(b",") > 1) or self._byte() == b"]":
                    self.repairs["commas"] += 1
            elif byte == b"]":
                self.at += 1
                self.is_open = False
                return
            elif byte == b"{":
                self._event()
            else:
                self._oddity()

    def _read_on(self) -> None:
        """Read on fast, where what was read before is used up but for the beginning of one more event."""
        if self.read_on is not None and not self.ended and len(self.text) - self.at < _FIRST_WINDOW:
            self.text, useful = self.read_on(self.text[self.at :])
            self.at = 0
            self.patience -= not useful
            if not self.patience:
                self.read_on = None

    def _event(self) -> None:
        """Take the one event that begins here, mending it if need be."""
        window = _FIRST_WINDOW
        while True:
            text = self.text[self.at : self.at + window].decode("latin-1")
            try:
                _, end = _SPAN.raw_decode(text)
            except RecursionError:
                self._damaged()
                return
            except json.JSONDecodeError as error:
                if not _ran_out(error, text):
                    self._damaged()
                    return
                if self.at + window >= len(self.text) and not self._more():
                    raise _CutError from error
                window *= 4
                continue
            break
        event = text[:end].encode("latin-1")
        self.at += end
        if not self.scanner.take(event) and not self._take_mended(event, quotes_hold=True):
            self.repairs["unreadable_events"] += 1

    def _take_mended(self, event: bytes, *, quotes_hold: bool = False, goes_on: bool = False) -> int:
        """Take an event's mended text; return how many of its bytes were used, 0 if it cannot be mended."""
        damaged = event.decode("utf-8", "surrogateescape")
        mended = mend(damaged, quotes_hold=quotes_hold)
        if mended is None or (goes_on and not damaged[mended[1] :].strip()):  # ended by the end of what was looked at
            return 0
        text, used, repairs = mended
        raw = text.encode("utf-8", "surrogateescape")
        valid = raw.decode("utf-8", "replace").encode()
        if not self.scanner.take(valid):
            return 0
        self.repairs.update(repairs)
        self.repairs["invalid_utf8"] += valid != raw
        return len(damaged[:used].encode("utf-8", "surrogateescape"))

    def _damaged(self) -> None:
        """Take a damaged event, which lasts until the next one seems to begin; drop it if it cannot be mended."""
        stop = self._next_start()
        window = _MEND_WINDOW
        while not (
            used := self._take_mended(self.text[self.at : min(stop, self.at + window)], goes_on=stop - self.at > window)
        ):
            if stop - self.at <= window:
                self.repairs["unreadable_events"] += 1
                self.at = stop
                if stop == len(self.text):
                    raise _CutError
                return
            window *= 16
        self.at += used

    def _next_start(self) -> int:
        """Return where the next event seems to begin, the text's end where none does; each stretch is searched once."""
        text, place = self.looked_through
        if text is not self.text or place <= self.at:
            while (found := _EVENT_START.search(self.text, self.at + 1)) is None and self._more():
                pass
            place = found.start() if found else len(self.text)
            self.looked_through = self.text, place
        return place

    def _oddity(self) -> None:
        """Step over something in the list that is no event."""
        try:
            self._decoded()
            self.repairs["odd_events"] += 1
        except ValueError:
            self._damaged()

    def after(self) -> None:
        """Look at what stands behind the document."""
        byte = self._byte()
        if byte:
            self.repairs["second_document" if byte in b"{[" else "text_behind"] += 1


def _whole(value: object) -> object:
    """Return a header's value whose texts are whole characters only."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value


def _ran_out(error: json.JSONDecodeError, text: str) -> bool:
    """Return whether a value could not be read because its text ends too early."""
    return error.msg.startswith("Unterminated string") or len(text) - error.pos <= 8
