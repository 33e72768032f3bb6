"""What differs between versions of torch and Python: one part for each difference, and nowhere else.

What a newer torch merely has more of is asked for where it is used (``getattr``), not by its version.
"""

import contextlib
import ctypes
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from uncork.records import dataclass

OLDEST = (2, 3)
"""First torch with all that recording needs (`torch.compiler.is_compiling`)."""
LOG_LEVEL_ERROR = 2
"""c10's level that leaves warnings out."""
THREAD_LINE = b"External init callback must run in same thread as registerClient"
"""What Kineto tells nobody of use: only its daemon mode has such a callback."""
LAST_WORDS_S = 0.05
"""Ten times what was enough for threads that had to share their cores with others; once per window with a profiler."""
KINETO_SILENT = 6
"""Kineto's level that leaves out all it says; 5 no longer does (capture study, section 1)."""


def version(torch: Any) -> tuple[int, int]:
    """Return major and minor version of torch."""
    major, minor = str(torch.__version__).split("+")[0].split(".")[:2]
    return int(major), int(minor)


def is_usable(torch: Any) -> bool:
    """Return whether a torch has all that recording needs."""
    return version(torch) >= OLDEST


def why_no_stacks(torch: Any) -> str:
    """Return the id of the note about a Python on which torch's Python tracer does not work, or nothing where it does.

    It crashed on Python 3.13 before torch 2.8 (pytorch#144094) and lost calls on 3.12.0 to 3.12.4 (#155446).
    """
    if sys.version_info >= (3, 13) and version(torch) < (2, 8):
        return "stacks-crash"
    return "stacks-lost-calls" if (3, 12, 0) <= sys.version_info[:3] <= (3, 12, 4) else ""


@dataclass(frozen=True)
class OpenMarks:
    """How a trace shows what was open at its end: ``word``, ``zero`` (no length), ``end`` (of the trace) or ``stack``.

    Args:
        regions: What began with `record_function`.
        operators: The program's own operators and autograd functions; ``stack`` where only Python's frames tell.
    """

    regions: str
    operators: str


def open_marks(torch: Any) -> OpenMarks:
    """Return how traces of this version show what was open at their end (each of 2.3 to 2.9 and 2.13 to 2.15 tried).

    Before 2.8 an operator without an end has no length; but so have a few in 100,000 of those that are over.
    """
    since = {(2, 8): ("word", "word"), (2, 7): ("word", "stack"), (2, 6): ("end", "stack")}
    return OpenMarks(*next((marks for first, marks in since.items() if version(torch) >= first), ("zero", "stack")))


def as_written(name: str) -> str:
    """Return a region's name as a trace may hold it, the same for all versions; asked of both, two can be compared.

    2.14 turns quotes into single ones, and from 2.7 on what is not printable ASCII is "unknown" as a whole.
    """
    text = name.replace("\n", "").replace("\\", "/").replace('"', "'")
    return "unknown" if is_lost(text) else text


def is_lost(name: str) -> bool:
    """Return whether Kineto writes "unknown" in place of a name."""
    return not (name.isascii() and name.isprintable())


def without_python_events(torch: Any, *, stacks: bool) -> Any:
    """Return the setting that makes `stop` a third cheaper, or None in a torch that lacks it (before 2.12).

    With stacks it would cost the calling lines, which torch writes since 2.14.
    """
    from torch._C._profiler import _ExperimentalConfig

    if stacks and version(torch) >= (2, 14):
        return None
    try:
        return _ExperimentalConfig(trace_only=True)
    except TypeError:
        return None


def let_collectives_end(torch: Any) -> None:
    """Let gloo's threads tell the profiler of the last collectives' ends: told after its stop, they go to freed memory.

    A collective is done for those who wait for it a moment before its thread says so. Where freed memory is overwritten
    (MALLOC_PERTURB_), two ranks of torch 2.3, 2.13 and 2.14 died of it within a few recordings of torch's own profiler;
    with 5 ms to wait none did in 120.
    """
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        time.sleep(LAST_WORDS_S)


class Quiet:
    """Raises the level from which one of torch's libraries speaks, until the end.

    Args:
        torch: The program's torch.
        library: Name of the library.
        symbol: Where it keeps the level.
        level: The level.
    """

    def __init__(self, torch: Any, library: str, symbol: str, level: int) -> None:
        self._level: Any = None
        with contextlib.suppress(Exception):
            (path,) = (Path(torch.__file__).parent / "lib").glob(f"{library}.[sd]*")
            kept = ctypes.c_int.in_dll(ctypes.CDLL(str(path)), symbol)
            self._before = kept.value
            kept.value = max(kept.value, level)
            self._level = kept

    def end(self) -> None:
        """Set the level back; harmless if that was done."""
        kept, self._level = self._level, None
        if kept is not None:
            kept.value = self._before


def quiet_kineto(torch: Any) -> Quiet:
    """Silence the lines that Kineto writes per window; it sets the level itself when a profiler is first prepared."""
    return Quiet(torch, "libtorch_cpu", "_ZN9libkineto6Logger14severityLevel_E", KINETO_SILENT)


def quiet_warnings(torch: Any) -> Quiet:
    """Silence torch's C++ warnings, one for each block of memory that a profiler did not see allocated."""
    return Quiet(torch, "libc10", "FLAGS_caffe2_log_level", LOG_LEVEL_ERROR)


class HeldBack:
    """Keeps what C code writes to standard error, and lets all but Kineto's line about threads follow at the end.

    Kineto writes that line, whatever its level, where it is first used on another thread than torch was imported on.
    Only C's own stream is held, not the file beneath it, so Python and child processes write as ever. The stream stays:
    another thread may be writing to it still.
    """

    def __init__(self) -> None:
        self._stderr: Any = None
        if threading.current_thread() is threading.main_thread():
            return
        with contextlib.suppress(Exception):
            self._libc = ctypes.CDLL(None)
            self._libc.gnu_get_libc_version  # noqa: B018  # elsewhere `stderr` may be no variable that can be set
            stderr = ctypes.c_void_p.in_dll(self._libc, "stderr")
            self._text, self._size = ctypes.c_char_p(), ctypes.c_size_t()
            self._libc.open_memstream.restype = ctypes.c_void_p
            stream = self._libc.open_memstream(ctypes.byref(self._text), ctypes.byref(self._size))
            if stream:
                self._before, stderr.value = stderr.value, stream
                self._stderr = stderr

    def end(self) -> None:
        """Let C write again, and write what is no line about threads; harmless if that was done."""
        stderr, self._stderr = self._stderr, None
        if stderr is None:
            return
        stream, stderr.value = stderr.value, self._before
        self._libc.fflush(ctypes.c_void_p(stream))
        lines = ctypes.string_at(self._text, self._size.value).splitlines(keepends=True)
        if others := b"".join(line for line in lines if THREAD_LINE not in line):
            os.write(2, others)
