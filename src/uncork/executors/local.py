"""Local: reads ranks on this machine, several at a time where that pays."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# Starting a second interpreter costs about 0.2 s; below this many bytes per file one process is faster.
_WORTH_A_PROCESS_BYTES = 4_000_000


class Local:
    """Maps over files in this process, or in one process per core when there are several large files.

    Args:
        processes: Most processes; 0 means one per core.
    """

    def __init__(self, processes: int = 0) -> None:
        self.processes = processes or os.cpu_count() or 1

    def map(self, work: Callable[[Path], T], paths: Sequence[Path]) -> Iterator[T]:
        """Yield the result for each path, in the paths' order."""
        large = sum(_size(path) > _WORTH_A_PROCESS_BYTES for path in paths)
        count = min(self.processes, large)
        if count < 2:
            yield from map(work, paths)
            return
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield from pool.map(work, paths)


def _size(path: Path) -> int:
    """Return how much JSON a file is likely to hold; gzip shrinks traces about 14 times (measured)."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size * 14 if path.suffix == ".gz" else size
