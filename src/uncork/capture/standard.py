"""Standard: modules of Python's library, imported late, that may be hidden by files beside the program's own script."""

import importlib
import os
import sys
from importlib.machinery import PathFinder
from typing import Any

LIBRARY = tuple(
    os.path.realpath(folder) + os.sep
    for folder in (os.path.dirname(os.__file__), os.path.join(sys.base_exec_prefix, "DLLs"))
)
"""Where Python's own modules lie; those in C have a folder below it, on Windows one beside it."""


def standard(name: str, *below: str) -> Any:
    """Return a module of the standard library; an `ImportError` where the program has one of that name: it would run.

    Args:
        name: The module.
        below: Modules that it imports itself, and nothing in the program has imported before.
    """
    for one in (name, *below):
        if not _is_standard(one):
            raise ImportError(name=one)
    return importlib.import_module(name)


def _is_standard(name: str) -> bool:
    """Return whether an import of this name would find, or has found, Python's own module."""
    if name in sys.builtin_module_names:
        return True
    known = sys.modules.get(name)
    found = known.__spec__ if known is not None else PathFinder.find_spec(name)
    path = os.path.realpath(found.origin or "") if found is not None else ""
    return path.startswith(LIBRARY) and "site-packages" not in path.split(os.sep)  # that lies below the library
