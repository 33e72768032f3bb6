"""Where ranks are read and measured: an executor maps a picklable function over files."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Runs one function over many files, wherever they lie; only the results travel."""

    def map(self, work: Callable[[Path], T], paths: Sequence[Path]) -> Iterator[T]:
        """Yield the result for each path, in the paths' order."""
        ...
