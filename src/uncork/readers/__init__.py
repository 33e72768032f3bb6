"""Readers: one module per format; READERS finds them by looking, and content decides which one reads a file.

A reader is a module in this folder with two functions: ``claims(head, path) -> bool`` says from a file's first bytes
(unpacked; empty for a folder) whether it is of its format, and ``read(path) -> list[Recording]`` reads it; one that
also takes ``progress`` is told of it. ``ORDER`` (50 where absent) says who is asked first. Adding a format adds one
file.
"""

import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType

from uncork.errors import UnreadableError
from uncork.readers.expand import expand
from uncork.readers.source import Progress, head_of
from uncork.recording import Recording

__all__ = ["READERS", "expand", "read"]


_SCANNERS = {"scan", "portable"}
"""No readers; only the one that serves is loaded."""


@cache
def _readers() -> tuple[ModuleType, ...]:
    """Return the readers in the order in which they are asked."""
    found = []
    for entry in pkgutil.iter_modules(__path__):
        if entry.name not in _SCANNERS:
            module = importlib.import_module(f"{__name__}.{entry.name}")
            if hasattr(module, "claims") and hasattr(module, "read"):
                found.append(module)
    return tuple(sorted(found, key=lambda module: (getattr(module, "ORDER", 50), module.__name__)))


def __getattr__(name: str) -> tuple[ModuleType, ...]:
    """Return READERS, found when first asked for: a reader may itself use this package."""
    if name == "READERS":
        return _readers()
    raise AttributeError(name)


def read(path: Path, progress: Progress | None = None) -> list[Recording]:
    """Return the recordings in a file or run folder, one per rank.

    Args:
        path: A file of any format that a reader claims, or a run folder.
        progress: Called with (bytes read, bytes in all) as reading goes on.
    """
    path = Path(path)
    head = head_of(path)
    for reader in _readers():
        if reader.claims(head, path):
            if "progress" in inspect.signature(reader.read).parameters:
                return list(reader.read(path, progress=progress))
            return list(reader.read(path))
    if not head and path.is_file():
        raise UnreadableError("unpacks_to_nothing" if path.stat().st_size else "file_empty", path=path)
    raise UnreadableError("no_recording", path=path)
