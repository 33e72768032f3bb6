"""Files that are never seen half written, and the folder that a process of the run may call its own."""

import contextlib
import errno
import json
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uncork.capture.apart import is_theirs

PIECE_BYTES = 1 << 16
"""How much of a file is read at once; more costs page faults."""
OWNER = "owner.pid"
"""File in a rank's folder that says which process owns it."""

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
"""A full disk, a limit on the size of files, a quota."""
FAULTS = ("disk-full", "recorder-fault", "handler-raised")
"""Files of the run folder of which each says that a recording ended early, and where."""


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


def note_fault(folder: str) -> str:
    """Return the kind of the fault that is being handled; a file of that name in the run folder says where it was.

    The first fault is kept; where a full disk takes no text the name alone says which.
    """
    error = sys.exc_info()[1]
    kind = _kind(error)
    with contextlib.suppress(OSError), (Path(folder) / kind).open("x", encoding="utf-8", errors="replace") as file:
        place = traceback.extract_tb(sys.exc_info()[2])[-1]
        what = f"{Path(place.filename).name}:{place.lineno}, {type(error).__name__}: {error}"
        file.write(what.splitlines()[0] + "\n" + traceback.format_exc())
    return kind


def pieces(path: Path, overlap: int) -> Iterator[tuple[bytes, int]]:
    """Yield a large file's bytes in pieces that cost no page faults, and where in each its own begin.

    Args:
        path: The file.
        overlap: So many bytes of the piece before stand in front of each.
    """
    before = b""
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            text = before + piece
            yield text, len(before)
            before = text[-overlap:]


def _kind(error: BaseException | None) -> str:
    full, fault, theirs = FAULTS
    if error is not None and is_theirs(error):
        return theirs
    return full if isinstance(error, OSError) and error.errno in FULL else fault


def fault_of(folder: Path) -> tuple[str, str]:
    """Return the kind of a run's first fault and where it was; two empty texts where there was none."""
    for kind in FAULTS:
        with contextlib.suppress(OSError):
            return kind, (folder / kind).read_text(encoding="utf-8").partition("\n")[0]
    return "", ""
