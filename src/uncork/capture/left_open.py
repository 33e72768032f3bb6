"""LeftOpen: regions that outlive the trace they began in; no other trace may begin before they close.

torch's profiler gives the memory of its events back when it stops. A region (RecordFunction) that is still open writes
its end there when it closes, if a profiler is on by then, whichever it is: programs die of it, at once or much later.
"""

import gc
import json
import mmap
import os
import re
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from uncork.capture.regions import PREFIX

HEAD = re.compile(rb'"cat": "(cpu_op|user_annotation)",\s*"name": "(.*?)",\s*"pid":', re.DOTALL)
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

    def add(self, trace: Path, kind: type) -> None:
        """Take in the regions that were open at the end of a trace.

        Args:
            trace: The file that torch wrote.
            kind: torch's ``record_function``: its object is gone once its ``with`` has ended. Nothing shows when any
                other region closes (an operator written in Python, say), so that no trace begins after it; but the
                compiler's close before the next step does.
        """
        wanted = set(names_left_open(trace))
        if wanted:
            found = [one for one in _alive(kind) if one.name in wanted]
            self._regions += [weakref.ref(one) for one in found]
            if wanted - {one.name for one in found}:
                self._once = is_in_compiler(sys._getframe())
                self._for_good = self._for_good or not self._once

    def add_all(self, kind: type) -> None:
        """Take in every region of the program's, since a trace that was not written cannot tell which were open."""
        self._regions += [weakref.ref(one) for one in _alive(kind)]


def names_left_open(trace: Path) -> Iterator[str]:
    """Return the names of the regions and operators that were open when the profiler stopped, apart from `OTHERS`.

    Newer versions of torch mark them; older ones write a length of 0 for regions, and nothing for operators.
    """
    with trace.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        for at in _places(text, b'"finished": false'):
            yield from _names(text[max(text.rfind(b'"ph":', 0, at), 0) : at])
        for at in _places(text, b'"cat": "user_annotation"'):
            event = text[at : text.find(b"}", at)]
            if b'"dur": 0,' in event:
                yield from _names(event)


def _places(text: mmap.mmap, wanted: bytes) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _names(event: bytes) -> Iterator[str]:
    if head := HEAD.search(event):
        try:
            name = json.loads(b'"%s"' % head[2])
        except ValueError:  # some versions write quotes in names as they are
            name = head[2].decode(errors="replace")
        if not name.startswith(OTHERS):
            yield name


def _alive(kind: type) -> list[Any]:
    """Return the regions that were entered; of those that ended some are kept, by decorators above all."""
    regions: list[Any] = [one for one in gc.get_referrers(kind) if type(one) is kind]
    return [one for one in regions if one.record is not None]


def is_in_compiler(frame: FrameType | None) -> bool:
    """Return whether torch.compile works, or runs what it compiled, on this stack: its regions last seconds."""
    while frame is not None and COMPILER not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None
