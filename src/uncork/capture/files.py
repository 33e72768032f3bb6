"""Files that are never seen half written, and the folder that a process of the run may call its own."""

import json
import os
from pathlib import Path
from typing import Any

OWNER = "owner.pid"
"""File in a rank's folder that says which process owns it."""


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new, never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def write_json(path: Path, value: object, *, indent: int | None = 1) -> None:
    """Write a value as JSON, atomically; what JSON cannot hold is written as text.

    Args:
        path: The file.
        value: The value.
        indent: None for long tables that are written often: that is ten times as quick.
    """
    write_atomic(path, json.dumps(value, indent=indent, default=str) + "\n")


def told(folder: Path) -> dict[str, Any]:
    """Return what recording.json says, a run's or a rank's; nothing where it is missing or broken."""
    try:
        return dict(json.loads((folder / "recording.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def not_taken(folder: Path, own: str = "") -> Path:
    """Return a folder's name, numbered where it is taken.

    Args:
        folder: The name that is wanted.
        own: What must not be in it; by default it must not be there at all.
    """
    free, turn = folder, 1
    while (free / own).exists():
        turn += 1
        free = folder.with_name(f"{folder.name}-{turn}")
    return free


def claim(folder: Path, rank: int) -> Path:
    """Return this process's folder: ``rank<N>``, or ``extra<pid>`` where another process has taken that rank."""
    wanted = folder / f"rank{rank}"
    wanted.mkdir(parents=True, exist_ok=True)
    owner = wanted / OWNER
    try:
        with owner.open("x", encoding="utf-8") as fresh:
            fresh.write(str(os.getpid()))
    except FileExistsError:
        if owner.read_text(encoding="utf-8") != str(os.getpid()):
            extra = folder / f"extra{os.getpid()}"
            extra.mkdir(exist_ok=True)
            return extra
    return wanted


def lead(folder: Path, pid: int) -> None:
    """Give the program's first process the place of rank 0 where a child of its own trained before it did.

    Ranks of a job keep their places, and so does a child that still runs: it writes to its folder by name.
    """
    ours, first = folder / f"extra{pid}", folder / "rank0"
    if not any((ours / name).is_file() for name in ("light.trace.json", "deep.trace.json", "functions.pstats")):
        return
    theirs = told(first)
    if theirs.get("ended") and theirs.get("world_size") == 1:
        first.rename(folder / f"extra{theirs['pid']}")
        ours.rename(first)
