"""Whose the imported packages are, where a name alone misleads: traces write no path in front of what Python imports.

There ``fastai/learner.py`` looks like the user's own, and the user's ``datasets/coco.py`` like a library's.
"""

import contextlib
import functools
import os
import sysconfig
from collections.abc import Mapping
from types import FrameType
from typing import Any

from uncork.frames import is_installed, is_users

FRAMEWORKS = frozenset(("fastai", "keras", "skorch", "transformers", "ultralytics"))
"""Those that make the DataLoader themselves, from settings with names of their own (`uncork.rules.own_words`)."""
KNOWN_ALWAYS = ("torch", "uncork")
"""Nobody's own, wherever they were built."""


def packages(modules: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``installed`` (packages that look like the user's) and ``own`` (theirs that look installed, with folders).

    Args:
        modules: What the program has imported.
    """
    main = _about(modules.get("__main__"))
    started, folders = _started(main), _folders(main)
    found: dict[str, Any] = {"installed": [], "own": {}}
    for name, module in list(modules.items()):
        if "." in name or name in KNOWN_ALWAYS or name in started:
            continue
        file = _file(_about(module))
        if not file or not _misleads(name, file):
            continue
        if is_installed(file):
            found["installed"].append(name)
        elif any(file.startswith(folder) for folder in folders):
            found["own"][name] = os.path.dirname(file.removesuffix("/__init__.py").removesuffix("\\__init__.py"))
    return {"installed": sorted(found["installed"]), "own": found["own"]}


def framework(frame: FrameType | None) -> str:
    """Return the framework whose loop runs, empty where the user's own code is the nearest that is not PyTorch's.

    Args:
        frame: The innermost frame.
    """
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name in FRAMEWORKS:
            return name
        if name not in KNOWN_ALWAYS and is_users(frame.f_code.co_filename):
            return ""
        frame = frame.f_back
    return ""


@functools.cache  # asked at each write, of as good as the same modules
def _misleads(name: str, file: str) -> bool:
    return is_users(f"{name}/a.py") is is_installed(file)


def _about(module: Any) -> Mapping[str, Any]:
    """Return a module's names without asking it: a lazy one would be imported then."""
    try:
        about: Mapping[str, Any] = object.__getattribute__(module, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return about if isinstance(about, dict) else {}


def _file(about: Mapping[str, Any]) -> str:
    """Return where a module lies: its file, of a package without ``__init__.py`` the one that it could have."""
    file = about.get("__file__")
    if isinstance(file, str):
        return file if os.path.isabs(file) and os.pardir not in file else os.path.abspath(file)
    path = next(iter(about.get("__path__") or ()), None)
    return os.path.join(os.path.abspath(path), "__init__.py") if isinstance(path, str) else ""


def _started(main: Mapping[str, Any]) -> set[str]:
    """Return the packages that were started by name, with ``-m`` or as a command: whoever does that works on them."""
    spec, file = main.get("__spec__"), main.get("__file__")
    started = {getattr(spec, "name", "").partition(".")[0]}
    if isinstance(file, str) and os.path.dirname(os.path.abspath(file)) == sysconfig.get_path("scripts"):
        called = [str(getattr(value, "__module__", "")) for value in list(main.values()) if callable(value)]
        started |= {module.partition(".")[0] for module in called}
    return started


def _folders(main: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the folders that hold what the user wrote: the program's, and the one it was started in."""
    file, folders = main.get("__file__"), []
    with contextlib.suppress(OSError):  # the one it was started in may be gone
        folders.append(os.getcwd())
    if isinstance(file, str):
        folders.append(os.path.dirname(os.path.abspath(file)))
    return tuple(os.path.join(folder, "") for folder in folders if folder != os.path.dirname(folder))
