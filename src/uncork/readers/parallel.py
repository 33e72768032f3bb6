"""scan_file: a trace file → Scanned with two threads: a large plain file in two halves, a packed one unpacked ahead."""

import os
import queue
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncork.readers.columns import Scanned
from uncork.readers.document import CutError, Walk, scan
from uncork.readers.engine import new_scanner
from uncork.readers.mend import FIELDS
from uncork.readers.source import Progress, Source

if TYPE_CHECKING:
    from typing_extensions import Self

_WORTH_SPLITTING_BYTES = 48 << 20
"""Below this a thread's start and the joining of columns cost more than the second core saves."""
_WORTH_AHEAD_BYTES = 1 << 20
_GUESS_BYTES = 4 << 20
_PIECE_BYTES = 1 << 19
_BETWEEN_EVENTS = re.compile(rf'\}}\s*,\s*(?=\{{\s*"(?:{FIELDS})"\s*:)'.encode())


def scan_file(path: Path, progress: Progress | None = None) -> Scanned:
    """Return the columns of a trace file, by two threads where two cores and the compiled scanner are there."""
    with Source(path, progress) as source:
        two = (os.cpu_count() or 1) > 1 and hasattr(new_scanner(), "absorb")
        if two and source.is_plain and source.size_bytes > _WORTH_SPLITTING_BYTES:
            scanned = _in_halves(source)
            if scanned is not None:
                return scanned
        elif two and not source.is_plain and source.size_bytes > _WORTH_AHEAD_BYTES:
            with _Ahead(source) as ahead:
                return scan(ahead, new_scanner())
    with Source(path, progress) as source:
        return scan(source, new_scanner())


def _in_halves(source: Source) -> Scanned | None:
    """Return the columns of a plain file read in two halves; None where the guessed middle was none.

    The second half begins where an event seems to begin. That is proven by the first half: its own reading must end
    exactly there, between two events.
    """
    middle = _middle(source)
    if middle is None:
        return None
    with _Stretch(source, 0, middle) as start, _Stretch(source, middle, source.size_bytes) as rest:
        first, second = Walk(start, new_scanner()), Walk(rest, new_scanner())
        failure: list[BaseException] = []
        thread = threading.Thread(target=_walk_second, args=(second, failure), name="uncork-second-half", daemon=True)
        thread.start()
        try:
            first.document()
        finally:
            rest.stopped = thread.is_alive() and not first.in_gap
            thread.join()
        return _joined(first, second, failure)


def _joined(first: Walk, second: Walk, failure: list[BaseException]) -> Scanned | None:
    """Return the columns of both halves, or None where the second did not begin at an event."""
    if not first.in_gap:
        return None
    if failure and not isinstance(failure[0], CutError):
        raise failure[0]
    first.repairs["cut_file"] = 0
    if not failure:
        _walk_tail(second, first.open_objects)
    elif first.open_objects:
        second.repairs["cut_file"] += 1
    joined: Any = first.scanner
    joined.absorb(second.scanner)
    first.header |= second.header
    return first.finish()


def _walk_second(walk: Walk, failure: list[BaseException]) -> None:
    """Walk the events of the second half."""
    try:
        walk.events(bare=False)
    except BaseException as error:  # noqa: BLE001 — the main thread raises it
        failure.append(error)


def _walk_tail(walk: Walk, open_objects: int) -> None:
    """Walk what stands behind the events."""
    try:
        for _ in range(open_objects):
            walk.members()
        walk.after()
    except CutError:
        walk.repairs["cut_file"] += 1


def _middle(source: Source) -> int | None:
    """Return a place near the middle of a file where an event seems to begin."""
    start = source.size_bytes // 2
    with source.path.open("rb") as file:
        file.seek(start)
        found = _BETWEEN_EVENTS.search(file.read(_GUESS_BYTES))
    return start + found.end() if found else None


class _Stretch:
    """A part of a plain file.

    Args:
        source: The file; told of the progress.
        start: First byte.
        stop: Behind the last byte.
    """

    cut = False

    def __init__(self, source: Source, start: int, stop: int) -> None:
        self.path = source.path
        self._source = source
        self._file = source.path.open("rb", buffering=0)
        self._file.seek(start)
        self._left_bytes = stop - start
        self.stopped = False

    def __enter__(self) -> "Self":
        """Return the part itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._file.close()

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next bytes, empty at the end of the part or where nobody wants more."""
        if self.stopped:
            return b""
        piece = self._file.read(min(wanted_bytes, self._left_bytes)) or b""
        self._left_bytes -= len(piece)
        self._source.tell(len(piece))
        return piece


class _Ahead:
    """A source that a thread reads and unpacks ahead of its reader.

    Args:
        source: The packed file.
    """

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self._source = source
        self._pieces: queue.Queue[bytes | BaseException] = queue.Queue(maxsize=8)
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="uncork-unpack", daemon=True)

    @property
    def cut(self) -> bool:
        """Return whether the packed stream ended before its end."""
        return self._source.cut

    def __enter__(self) -> "Self":
        """Start reading."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop reading."""
        self._stop = True
        while self._thread.is_alive():
            with suppress(queue.Empty):
                self._pieces.get(timeout=0.01)
        self._thread.join()

    def _run(self) -> None:
        piece: bytes | BaseException = b"-"
        while piece and not self._stop and not isinstance(piece, BaseException):
            try:
                piece = self._source.read(_PIECE_BYTES)
            except BaseException as error:  # noqa: BLE001 — the reader raises it
                piece = error
            self._pieces.put(piece)

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next piece, empty at the end."""
        del wanted_bytes
        piece = self._pieces.get()
        if isinstance(piece, BaseException):
            raise piece
        return piece
