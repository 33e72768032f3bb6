"""Source: the bytes of a recording whatever it is packed in, told by content and never by name."""

import codecs
import io
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from isal import igzip as _igzip

from uncork.errors import UnreadableError
from uncork.readers.salvage import Salvaged

if TYPE_CHECKING:
    from typing_extensions import Self

Progress = Callable[[int, int], None]
"""Called with (bytes of the file read so far, bytes of the file)."""

HEAD_BYTES = 64 << 10
_PIECE_BYTES = 1 << 20
_BOMB_RATIO = 400
"""Traces shrink 10 to 40 times; a file that grows more than this, beyond the size below, is refused."""
_BOMB_FLOOR_BYTES = 1 << 30
_RECORDINGS = (".json", ".json.gz", ".pickle", ".pkl", ".prof", ".pstats")
_ENCODINGS = (
    (b"\xff\xfe\0\0", "utf-32-le"),
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_WIDE = (
    ("utf-16-le", re.compile(rb"(?:[\t\n\r ]\0)*[\[{]\0")),
    ("utf-16-be", re.compile(rb"(?:\0[\t\n\r ])*\0[\[{]")),
)
"""How a document without a mark begins in two bytes per character."""


class Source:
    """A recording's bytes, unpacked as they are read.

    Args:
        path: The file.
        progress: Told how far reading has come.

    Attributes:
        packing: ``plain``, ``gzip``, ``zstd`` or ``zip``.
        damage: What is wrong with the packing, as kinds of repairs: ``cut_file``, ``checksum``, ``text_behind``.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress
        self._given_bytes = 0
        self._told_bytes = 0
        self.damage: set[str] = set()
        try:
            about = path.stat()
            if not stat.S_ISREG(about.st_mode):  # a pipe may never say anything, nor end
                raise UnreadableError("no_plain_file", path=path)
            self.size_bytes = about.st_size
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise UnreadableError("cannot_open", path=path, reason=error.strerror) from error
        self._decoder: codecs.IncrementalDecoder | None = None
        try:
            self.packing, self._stream = _unpacked(self._file, path)
            self._waiting = self._text_start()
        except OSError as error:
            self._file.close()
            raise UnreadableError("cannot_read", path=path, reason=error.strerror) from error
        except BaseException:
            self._file.close()
            raise
        self.is_plain = self.packing == "plain" and self._waiting[:1] in {b"{", b"["} and self._decoder is None
        """The file is the text itself, so that it may be read from any place on."""

    def __enter__(self) -> "Self":
        """Return the source itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._stream.close()
        self._file.close()

    def whole(self, most_bytes: int, refusal: str) -> bytes:
        """Return all bytes.

        Args:
            most_bytes: More are not read.
            refusal: Code of the error that says so.

        Raises:
            UnreadableError: There are more.
        """
        pieces, size = [], 0
        while piece := self.read(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > most_bytes:
                raise UnreadableError(refusal, path=self.path)
        return b"".join(pieces)

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next bytes, empty at the end."""
        if self._waiting:
            chunk, self._waiting = self._waiting, b""
            return chunk
        if self._decoder is None:
            return self._unpack(wanted_bytes)
        while chunk := self._unpack(wanted_bytes):
            text = self._as_utf8(chunk)
            if text:  # a part of one character gives none yet, which is no end
                return text
        return self._as_utf8(b"")

    def _unpack(self, wanted_bytes: int) -> bytes:
        try:
            chunk = self._stream.read(wanted_bytes)
        except MemoryError:
            raise
        except Exception as error:
            chunk = self._salvage(wanted_bytes)
            if not chunk and not self._given_bytes:
                raise UnreadableError("packing_damaged", path=self.path, packing=self.packing, reason=error) from error
        self._given_bytes += len(chunk)
        if self._given_bytes > max(_BOMB_FLOOR_BYTES, _BOMB_RATIO * self.size_bytes):
            raise UnreadableError("bomb", path=self.path, ratio=_BOMB_RATIO)
        self.tell(max(0, self._file.tell() - self._told_bytes))
        return chunk

    def _salvage(self, wanted_bytes: int) -> bytes:
        """Return what comes next of a text whose packing is damaged."""
        if self.packing == "gzip":
            self._stream = cast("BinaryIO", Salvaged(self._file, self._given_bytes, self.damage))
            return self._stream.read(wanted_bytes)
        self.damage.add("cut_file")
        self._stream = io.BytesIO()
        return b""

    def tell(self, more_bytes: int) -> None:
        """Say that some more bytes of the file have been read."""
        self._told_bytes += more_bytes
        if self._progress:
            self._progress(min(self._told_bytes, self.size_bytes), self.size_bytes)

    def _text_start(self) -> bytes:
        """Return the first bytes as UTF-8, having found out in which encoding the text is."""
        first = self._unpack(HEAD_BYTES)
        if first.startswith(codecs.BOM_UTF8):
            self.packing = "marked"
            return first[3:]
        for mark, encoding in _ENCODINGS:
            if first.startswith(mark):
                self._decoder = codecs.getincrementaldecoder(encoding)("replace")
                return self._as_utf8(first[len(mark) :])
        for encoding, wide in _WIDE:
            if wide.match(first):
                self._decoder = codecs.getincrementaldecoder(encoding)("replace")
                return self._as_utf8(first)
        return first

    def _as_utf8(self, chunk: bytes) -> bytes:
        decoder = cast("codecs.IncrementalDecoder", self._decoder)
        return decoder.decode(chunk, final=not chunk).encode("utf-8", "replace")


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; of a folder none."""
    if path.is_dir():
        return b""
    with Source(path) as source:
        return source.read(HEAD_BYTES)


def _unpacked(file: BinaryIO, path: Path) -> tuple[str, BinaryIO]:
    """Return how a file is packed and a stream of what is in it."""
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return "gzip", _gunzip(file)
    if magic == b"\x28\xb5\x2f\xfd":
        return "zstd", _zstd(file, path)
    if magic == b"PK\x05\x06":
        raise UnreadableError("zip_empty", path=path)
    if magic == b"PK\x03\x04":
        return "zip", _zipped(file, path)
    return "plain", file


def _gunzip(file: BinaryIO) -> BinaryIO:
    unpacking: Any = _igzip.IGzipFile
    return cast("BinaryIO", unpacking(fileobj=file, mode="rb"))


def _zstd(file: BinaryIO, path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError as error:
        raise UnreadableError("zstd_missing", path=path) from error
    return cast("BinaryIO", zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))


def _zipped(file: BinaryIO, path: Path) -> BinaryIO:
    """Return the one trace in a zip archive; names in the archive are never used as paths."""
    import zipfile

    try:
        archive = zipfile.ZipFile(file)
        members = [
            item for item in archive.infolist() if not item.is_dir() and not item.filename.startswith("__MACOSX")
        ]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise UnreadableError("packing_damaged", path=path, packing="zip", reason=error) from error
    traces = [item for item in members if item.filename.lower().endswith((".json", ".json.gz"))] or members
    if any(item.filename.endswith(("data.pkl", "/version")) for item in members):
        raise UnreadableError("foreign_torch_save", path=path)
    if members and all(item.filename.endswith(".npy") for item in members):
        raise UnreadableError("foreign_numpy", path=path)
    if len(traces) != 1:
        known = any(item.filename.lower().endswith(_RECORDINGS) for item in members)
        raise UnreadableError("zip_of_several" if known else "no_recording", path=path, count=len(traces))
    try:
        inner = cast("BinaryIO", archive.open(traces[0]))
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
        raise UnreadableError("cannot_unpack", path=path, packing="zip", reason=error) from error
    start = io.BufferedReader(cast("io.RawIOBase", inner), HEAD_BYTES)
    if start.peek(2)[:2] == b"\x1f\x8b":
        return _gunzip(cast("BinaryIO", start))
    return cast("BinaryIO", start)
