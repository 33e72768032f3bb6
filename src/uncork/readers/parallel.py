"""scan_file: a trace file → Scanned, its events read by two threads, whatever it is packed in.

The threads take pieces of the text in turn: one unpacks the next piece while the other scans. A piece is scanned from
the first place on where an event seems to begin. That is proven afterwards, when the pieces are put together in order:
what the piece before left over, with what stands before that place, must be whole events. Where it is not, or where
anything in the text is unusual, the rest goes back to the walk, which reads it serially and then asks again.
"""

import os
import re
import threading
from pathlib import Path
from typing import Any

from uncork.errors import UnreadableError
from uncork.readers.columns import Scanned
from uncork.readers.document import Text, scan
from uncork.readers.engine import new_scanner
from uncork.readers.mend import FIELDS
from uncork.readers.source import Progress, Source

_WORTH_SHARING_BYTES = 1 << 20
"""Of a smaller file the first piece is most of it."""
_PIECE_BYTES = 1 << 19
"""Half of what a core's second cache holds: a piece is scanned while it is still there."""
_GUESS_BYTES = 256 << 10
_BETWEEN_EVENTS = re.compile(rf'\}}\s*,\s*(?=\{{\s*"(?:{FIELDS})"\s*:)'.encode())
_COMMA = re.compile(rb"\s*,?\s*")
_ONE_COMMA = re.compile(rb"\s*,\s*")


def scan_file(path: Path, progress: Progress | None = None) -> Scanned:
    """Return the columns of a trace file, by two threads where two cores and the compiled scanner are there."""
    with Source(path, progress) as source:
        scanner = new_scanner()
        worth = hasattr(scanner, "absorb") and source.size_bytes * (1 if source.is_plain else 10) > _WORTH_SHARING_BYTES
        return scan(source, scanner, Shared(source, scanner).read_on if worth else None)


class Shared:
    """A text whose events are read by several threads.

    Args:
        source: The text; told of the progress.
        scanner: Gets the events, in the order of the text.
    """

    def __init__(self, source: Text, scanner: Any) -> None:  # noqa: ANN401 — the compiled scanner, where it is built
        self._source = source
        self._scanner = scanner
        self._reading = threading.Lock()
        self._turn = threading.Condition()
        self._rest = b""

    def read_on(self, rest: bytes) -> tuple[bytes, bool]:
        """Take events as far as they are plain; return the text at which that ended, and whether it was any use.

        Args:
            rest: What has been read of the text and not taken, from between two events on.
        """
        self._rest = rest
        self._dealt = self._put = self._useful = 0
        self._ended = self._stopped = False
        self._failure: BaseException | None = None
        helpers = [threading.Thread(target=self._work, daemon=True) for _ in range(min(2, os.cpu_count() or 1) - 1)]
        for helper in helpers:
            helper.start()
        try:
            self._work()
            for helper in helpers:
                helper.join()
        finally:
            self._stopped = True
        if self._failure is not None:
            raise self._failure
        return self._rest, self._useful > 0

    def _work(self) -> None:
        """Read pieces until the text ends or is unusual."""
        own: Any = new_scanner()
        try:
            while not self._stopped and self._one_piece(own):
                pass
        except BaseException as error:  # noqa: BLE001 — read_on raises it
            with self._turn:
                self._failure = self._failure or error
                self._stopped = True
                self._turn.notify_all()

    def _one_piece(self, own: Any) -> bool:  # noqa: ANN401
        """Read one piece, scan it, and put it behind those before it; return whether there was one."""
        with self._reading:
            piece = b"" if self._ended else self._source.read(_PIECE_BYTES)
            self._ended = not piece
            number = self._dealt
            self._dealt += bool(piece)
        if not piece:
            return False
        found = _BETWEEN_EVENTS.search(piece, 0, _GUESS_BYTES)
        start = found.end() if found else len(piece)
        stop = own.feed(piece, start)
        with self._turn:
            self._turn.wait_for(lambda: self._put == number or self._failure)
            if found and not self._stopped and self._fills(self._rest + piece[:start]):
                self._absorb(own)
                self._rest = piece[stop:]
                self._useful += 1
            else:
                self._rest += piece if self._stopped or not found else piece[start:]
                self._stopped = True
            self._put += 1
            self._turn.notify_all()
        return True

    def _absorb(self, own: Any) -> None:  # noqa: ANN401
        try:
            self._scanner.absorb(own)
        except OverflowError as error:
            raise UnreadableError("too_many_keys", path=self._source.path) from error

    def _fills(self, joint: bytes) -> bool:
        """Take the events between two pieces; return whether they fill the space. What they leave is the rest."""
        begin = _COMMA.match(joint)
        at = begin.end() if begin else 0
        stop = self._scanner.feed(joint, at)
        self._rest = joint[stop:] if stop > at else joint
        return stop > at and _ONE_COMMA.fullmatch(joint, stop) is not None
