"""LeftOpen: regions that outlive the trace they began in; no other trace may begin before they close.

torch's profiler gives the memory of its events back when it stops. A region (RecordFunction) that is still open writes
its end there when it closes, if a profiler is on by then, whichever it is: programs die of it, at once or much later.
"""

import gc
import json
import os
import re
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from uncork.capture.lost_names import as_written
from uncork.capture.regions import PREFIX
from uncork.capture.versions import marks_unfinished

HEAD = re.compile(rb'"cat": "(\w+)",\s*"name": "(.*?)",\s*"pid":', re.DOTALL)
PIECE_BYTES, EVENT_BYTES = 1 << 16, 1 << 12
"""How much of a trace is searched at once (more costs page faults); what of an event may stand before its mark."""
UNFINISHED = re.compile(rb'"finished": false(?<!\d{12}, "finished": false)')
"""The mark of an event without an end. Events of memory all have it, and an address before it."""
NO_LENGTH = re.compile(rb'"dur": 0,')
MARK_BYTES = 17
"""Length of the longer mark."""
OTHERS = (PREFIX, "gloo:", "mpi:", "nccl:", "ucc:", "xccl:", "hccl:")
"""Begin of names that are no matter here: `Regions` knows its own, and collectives (c10d) end by themselves."""

COMPILER = f"torch{os.sep}_dynamo{os.sep}"
"""Part of the path of each file of torch.compile's front end."""


class LeftOpen:
    """What is known of the regions that were open when a trace ended."""

    def __init__(self) -> None:
        self._regions: list[weakref.ref[Any]] = []
        self._for_good = self._once = False

    def holds_back(self) -> bool:
        """Return whether another trace would be one too many here."""
        once, self._once = self._once, False
        self._regions = [region for region in self._regions if region() is not None]
        return self._for_good or once or bool(self._regions)

    def add(self, trace: Path, torch: Any) -> None:
        """Take in the regions that were open at the end of a trace.

        The object of a ``record_function`` is gone once its ``with`` has ended. Nothing shows when any other region
        closes (an operator written in Python, say), so that no trace begins after it; but the compiler's close before
        the next step does.

        Args:
            trace: The file that torch wrote.
            torch: The program's torch.
        """
        wanted = set(names_left_open(trace, are_marked=marks_unfinished(torch)))
        if wanted:
            found = [one for one in _alive(torch) if as_written(one.name) in wanted]
            self._regions += [weakref.ref(one) for one in found]
            if wanted - {as_written(one.name) for one in found}:
                self._once = is_in_compiler(sys._getframe())
                self._for_good = self._for_good or not self._once

    def add_all(self, torch: Any) -> None:
        """Take in every region of the program's, since a trace that was not written cannot tell which were open."""
        self._regions += [weakref.ref(one) for one in _alive(torch)]


def names_left_open(trace: Path, *, are_marked: bool) -> Iterator[str]:
    """Return the names of the regions and operators that were open when the profiler stopped, apart from `OTHERS`.

    Args:
        trace: The file that torch wrote.
        are_marked: This version marks each; older ones may write a length of 0 for regions, and nothing for operators.
    """
    marks = {UNFINISHED: (b"cpu_op", b"user_annotation")} | ({} if are_marked else {NO_LENGTH: (b"user_annotation",)})
    for text, begin in _pieces(trace):
        for mark, kinds in marks.items():
            for found in mark.finditer(text, max(begin - MARK_BYTES + 1, 0)):
                head = HEAD.search(text[max(found.start() - EVENT_BYTES, 0) : found.start()].rpartition(b'"ph":')[2])
                is_open = head and head[1] in kinds and found.end() > begin
                if head and is_open and not (name := _decoded(head[2])).startswith(OTHERS):
                    yield name


def _pieces(trace: Path) -> Iterator[tuple[bytes, int]]:
    """Yield the text piece by piece, the end of the piece before in front of each, and where it begins itself."""
    before = b""
    with trace.open("rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            text = before + piece
            yield text, len(before)
            before = text[-EVENT_BYTES:]


def _decoded(name: bytes) -> str:
    """Return a name as the program wrote it; some versions leave its quotes as they are."""
    try:
        return str(json.loads(b'"%s"' % name))
    except ValueError:
        return name.decode(errors="replace")


def _alive(torch: Any) -> list[Any]:
    """Return the program's regions that were entered; of those that ended some are kept, by decorators above all."""
    kind = torch.autograd.profiler.record_function
    regions: list[Any] = [one for one in gc.get_referrers(kind) if type(one) is kind]
    return [one for one in regions if one.record is not None]


def is_in_compiler(frame: FrameType | None) -> bool:
    """Return whether torch.compile works, or runs what it compiled, on this stack: its regions last seconds."""
    while frame is not None and COMPILER not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None
