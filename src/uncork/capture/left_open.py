"""LeftOpen: regions that outlive the trace they began in; no other trace may begin before they close.

torch's profiler gives the memory of its events back when it stops. A region (RecordFunction) that is still open writes
its end there when it closes, if a profiler is on by then, whichever it is: programs die of it, at once or much later.
"""

import gc
import json
import os
import re
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from inspect import getattr_static
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from uncork.capture.files import pieces
from uncork.capture.regions import PREFIX
from uncork.capture.versions import OpenMarks, as_written, open_marks

HEAD = re.compile(rb'"cat": "(\w+)",\s*"name": "(.*?)",\s*"pid":', re.DOTALL)
EVENT_BYTES = 1 << 12
"""What of an event may stand before its mark."""
MARKS = {
    "word": re.compile(rb'"finished": false(?<!\d{12}, "finished": false)'),
    "zero": re.compile(rb'"dur": 0(?:\.000)?,'),
}
"""The marks of an event without an end. Events of memory all have the word, and an address before it."""
REGION = re.compile(
    rb'"user_annotation", "name": "(.*?)", "pid": \d+, "tid": \d+,\s*"ts": (\d+)\.(\d{3}), "dur": (\d+)\.(\d{3})',
    re.DOTALL,
)
END = re.compile(rb'"Record Window End"[^}]*"ts": (\d+)\.(\d{3})')
MARK_BYTES = 17
"""Length of the longest mark."""
OTHERS = (PREFIX, "nccl:", "xccl:", "hccl:")
"""Begin of names that are no matter here: `Regions` knows its own, and collectives of devices end once they are queued.
Those of gloo end on a thread of its own when they are done: ranks died of receives that ended in another trace."""

COMPILER = (f"torch{os.sep}_dynamo{os.sep}",)
"""Part of the path of each file of torch.compile's front end."""
OPERATORS = (f"torch{os.sep}autograd{os.sep}function.py", f"torch{os.sep}_ops.py")
"""Files of torch through which an operator calls Python."""


class LeftOpen:
    """What is known of the regions that were open when a trace ended."""

    def __init__(self) -> None:
        self._regions: list[weakref.ref[Any]] = []
        self._for_good = self._once = False
        self._below: tuple[int, set[CodeType]] | None = None

    def holds_back(self) -> bool:
        """Return whether another trace would be one too many here."""
        once, self._once = self._once, False
        self._regions = [region for region in self._regions if region() is not None]
        if self._below and self._below[0] == threading.get_ident():
            is_below = any(frame.f_code in self._below[1] for frame in _stack(sys._getframe()))
            self._below = self._below if is_below else None
        return self._for_good or once or self._below is not None or bool(self._regions)

    def add(self, trace: Path, torch: Any) -> None:
        """Take in the regions that were open at the end of a trace.

        The object of a ``record_function`` is gone once its ``with`` has ended; a decorator's stays, but has another
        record for each call. An operator written in Python has closed once what runs it has left the thread's stack.
        Nothing shows when any other region closes (a collective, a kernel in Python), so that no trace begins after
        it; but the compiler's close before the next step does.

        Args:
            trace: The file that torch wrote.
            torch: The program's torch.
        """
        marks = open_marks(torch)
        wanted = {as_written(name) for name in names_left_open(trace, marks)}
        found = [one for one in _alive(torch) if as_written(one.name) in wanted] if wanted else []
        self._regions += [weakref.ref(one.record) for one in found]
        unknown = wanted - {as_written(one.name) for one in found}
        by_stack = marks.operators == "stack"
        below = _operators_below(sys._getframe(), torch) if unknown or by_stack else {}
        open_ones = set(below) if by_stack else unknown
        if unknown or open_ones:
            self._once = is_in_compiler(sys._getframe())
            if not self._once and below and unknown <= set(below):
                self._below = threading.get_ident(), {code for name in open_ones for code in below[name]}
            else:
                self._for_good = self._for_good or not self._once

    def add_all(self, torch: Any) -> None:
        """Take in every region of the program's, since a trace that was not written cannot tell which were open."""
        self._regions += [weakref.ref(one.record) for one in _alive(torch)]


def names_left_open(trace: Path, marks: OpenMarks) -> Iterator[str]:
    """Return the names of the regions and operators that were open when the profiler stopped, apart from `OTHERS`.

    Args:
        trace: The file that torch wrote.
        marks: How this version shows them.
    """
    if marks.regions == "end":
        yield from _regions_to_the_end(trace)
    shown = {b"user_annotation": marks.regions, b"cpu_op": marks.operators}
    for text, begin in pieces(trace, EVENT_BYTES):
        for mark in MARKS.keys() & shown.values():
            for found in MARKS[mark].finditer(text, max(begin - MARK_BYTES + 1, 0)):
                head = HEAD.search(text[max(found.start() - EVENT_BYTES, 0) : found.start()].rpartition(b'"ph":')[2])
                is_open = head and shown.get(head[1]) == mark and found.end() > begin
                if head and is_open and not (name := _decoded(head[2])).startswith(OTHERS):
                    yield name


def _regions_to_the_end(trace: Path) -> Iterator[str]:
    """Yield the names of the regions that last as long as the trace, to the nanosecond."""
    with trace.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - EVENT_BYTES, 0))
        found = END.search(file.read())
    end_ns = int(b"".join(found.groups())) if found else -1
    for text, _ in pieces(trace, EVENT_BYTES):
        for name, *times in REGION.findall(text):
            begin, begin_places, length, length_places = times
            is_open = int(begin + begin_places) + int(length + length_places) == end_ns
            if is_open and not (decoded := _decoded(name)).startswith(OTHERS):
                yield decoded


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
    return [one for one in regions if getattr(one, "record", None) is not None]


def _operators_below(frame: FrameType, torch: Any) -> dict[str, set[CodeType]]:
    """Return what runs the operators in Python that are on a stack, by their names as a trace may hold them.

    That is torch's function that called one; from 2.14 on C code calls a ``forward``: there it is that.
    """
    found: dict[str, set[CodeType]] = defaultdict(set)
    forwards = _forwards(torch.autograd.Function)
    for one in _stack(frame):
        names = forwards.get(one.f_code, set())
        if runs_in(one, OPERATORS):
            called = one.f_locals.get("cls", one.f_locals.get("self"))
            kind = called if isinstance(called, type) else type(called)
            names = {str(getattr(getattr(called, "_schema", None), "name", kind.__name__))}
        for name in names:
            found[as_written(name)].add(one.f_code)
    return found


def _forwards(base: type) -> dict[CodeType, set[str]]:
    """Return the names of the operators in Python that run each code: of all classes made from a base."""
    found: dict[CodeType, set[str]] = defaultdict(set)
    kinds = [base]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        forward = getattr_static(kind, "forward", None)
        code = getattr(getattr(forward, "__func__", forward), "__code__", None)
        if code is not None:
            found[code].add(kind.__name__)
    return found


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_in_compiler(frame: FrameType | None) -> bool:
    """Return whether torch.compile works, or runs what it compiled, on this stack: its regions last seconds."""
    return runs_below(frame, COMPILER)


def runs_below(frame: FrameType | None, paths: tuple[str, ...]) -> bool:
    """Return whether one of a stack's files has one of these parts of paths."""
    return any(runs_in(one, paths) for one in _stack(frame))


def runs_in(frame: FrameType, paths: tuple[str, ...]) -> bool:
    """Return whether a frame's file has one of these parts of paths."""
    return any(path in frame.f_code.co_filename for path in paths)
