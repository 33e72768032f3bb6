"""Local: reads ranks on this machine, several at a time where that pays."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from uncork.errors import UnreadableError

T = TypeVar("T")

# Starting a second interpreter costs about 0.2 s; below this many bytes per file one process is faster.
_WORTH_A_PROCESS_BYTES = 4_000_000
_WORTH_A_PROCESS_FILES = 200
"""However small: each takes 4 ms at least (2,000 traces of 5 KB)."""
_PEAK_RATIO = 1.5
"""The most memory that analysing takes, against the size as JSON (docs/reading-speed.md: 0.74 to 1.23)."""


class Local:
    """Maps over files in this process, or in several processes when there are several large files, or very many.

    Args:
        processes: Most processes; 0 means as many as there are cores for, and memory.
    """

    def __init__(self, processes: int = 0) -> None:
        self.processes = processes or _cores()

    def map(self, work: Callable[[Path], T], paths: Sequence[Path]) -> Iterator[T]:
        """Yield the result for each path, in the paths' order."""
        sizes = [_size_bytes(path) for path in paths]
        worth = sum(size > _WORTH_A_PROCESS_BYTES for size in sizes) + len(sizes) // _WORTH_A_PROCESS_FILES
        count = min(self.processes, worth)
        if count > 1:
            count = min(count, int(_memory_left_bytes() / (max(1, *sizes) * _PEAK_RATIO)))
        yield from _in_processes(count, work, paths) if count > 1 else map(work, paths)


def _in_processes(count: int, work: Callable[[Path], T], paths: Sequence[Path]) -> Iterator[T]:
    """Yield the results of processes, which end with this one, however it ends."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    others = set(active_children())
    pool: ProcessPoolExecutor | None = None
    try:
        with _deaf_to_interrupts():  # what the pool makes is also registered for being cleared away
            pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_end_with_parent)
            results = pool.map(work, paths)
        yield from results
    except BrokenProcessPool as error:
        raise UnreadableError("reading_killed", count=len(paths)) from error
    finally:
        for child in set(active_children()) - others:
            child.terminate()
        if pool:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes that no Ctrl-C reaches (a terminal sends it to all); it is heard here once they are started."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # when it starts, Python lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process when the one that started it is gone, killed perhaps: nobody is left to take its results."""
    from multiprocessing import parent_process

    def wait() -> None:
        if parent := parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_left_bytes() -> int:
    """Return how much memory is free, of the machine or of the container that this process runs in."""
    import psutil

    left = int(psutil.virtual_memory().available)
    container = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((container / f"memory.{name}").read_text("ascii")) for name in ("max", "current"))
    except (OSError, ValueError):  # no container, or one without a limit
        return left
    return min(left, limit - used)


def _size_bytes(path: Path) -> int:
    """Return how much JSON a file is likely to hold; packing shrinks traces about 14 times (measured)."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size * 14 if path.suffix in {".gz", ".zst", ".zip"} else size
