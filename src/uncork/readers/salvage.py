"""Salvaged: a damaged gzip file's text as far as it unpacks, and what is wrong with the file."""

import zlib
from typing import BinaryIO

_BLOCK_BYTES = 4 << 10
_PIECE_BYTES = 16 << 10
"""Where the packed data turn wrong, at most this much of the text before is lost with them."""
_TRAILER_BYTES = 8
_HEADER_BYTES = 10
_EXTRA, _NAME, _COMMENT, _CHECK = 4, 8, 16, 2
_LONGEST_HEADER_BYTES = 1 << 17


class Salvaged:
    """Reads a gzip file's members whatever their checksums say.

    Args:
        file: The file, read from its beginning.
        skip_bytes: How much of the text has been read already.
        damage: Gets the kinds of damage that are met: ``cut_file``, ``checksum``, ``text_behind``.
    """

    def __init__(self, file: BinaryIO, skip_bytes: int, damage: set[str]) -> None:
        self._file = file
        self._file.seek(0)
        self._skip_bytes = skip_bytes
        self._damage = damage
        self._block = b""
        self._member = 0
        self._begin()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _begin(self) -> None:
        """Go to the text of the next member; what is no member is not read."""
        self._inflating = zlib.decompressobj(-zlib.MAX_WBITS)
        self._check = self._size_bytes = 0
        # No more is read than the header takes: what lies ahead is copied for each member, and there may be millions.
        while not (start := _header_end(self._block)) and len(self._block) < _LONGEST_HEADER_BYTES:
            more = self._file.read(_BLOCK_BYTES)
            if not more:
                break
            self._block += more
        self._over = not start
        if self._over and self._block.strip(b"\0"):
            self._damage.add("text_behind" if self._member else "cut_file")
        self._member += 1
        self._block = self._block[start:]

    def read(self, wanted_bytes: int) -> bytes:
        """Return the next bytes of the text, empty where no more can be had."""
        pieces: list[bytes] = []
        while wanted_bytes > 0 and (piece := self._piece()):
            pieces.append(piece)
            wanted_bytes -= len(piece)
        return b"".join(pieces)

    def _piece(self) -> bytes:
        while not self._over:
            self._block = self._block or self._file.read(_BLOCK_BYTES)
            try:
                piece = self._inflating.decompress(self._block, _PIECE_BYTES)
            except zlib.error:
                self._damage.add("cut_file")
                self._over = True
                break
            self._over = not self._block and not piece
            if self._over:
                self._damage.add("cut_file")
            self._block = self._inflating.unconsumed_tail
            self._check = zlib.crc32(piece, self._check)
            self._size_bytes += len(piece)
            if self._inflating.eof:
                self._end()
            skipped = min(self._skip_bytes, len(piece))
            self._skip_bytes -= skipped
            if piece[skipped:]:
                return piece[skipped:]
        return b""

    def _end(self) -> None:
        """Compare a member with its trailer, and go on to the next."""
        rest = self._inflating.unused_data
        rest += self._file.read(_TRAILER_BYTES)
        told = self._check.to_bytes(4, "little") + (self._size_bytes % 2**32).to_bytes(4, "little")
        if len(rest) >= _TRAILER_BYTES and rest[:_TRAILER_BYTES] != told:
            self._damage.add("checksum")
        self._block = rest[_TRAILER_BYTES:]
        self._begin()


def _header_end(head: bytes) -> int:
    """Return where a member's packed data begin, 0 where no member begins here."""
    if head[:3] != b"\x1f\x8b\x08" or len(head) <= _HEADER_BYTES:
        return 0
    flags, at = head[3], _HEADER_BYTES
    if flags & _EXTRA:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            at = head.find(b"\0", at) + 1
            if not at:
                return 0
    at += 2 * bool(flags & _CHECK)
    return at if at < len(head) else 0
