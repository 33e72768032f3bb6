"""Trigger: tell a program that waits armed to record from its next step on."""

import os
import tempfile
from pathlib import Path

from uncork.capture.options import GO
from uncork.errors import UncorkError


def register(pid: int, folder: Path) -> Path:
    """Note where the run of a supervisor lies, and return the note, which the supervisor removes at its end."""
    place = _register()
    place.mkdir(mode=0o700, exist_ok=True)
    note = place / str(pid)
    note.write_text(str(folder), encoding="utf-8")
    return note


def trigger(pid: int) -> None:
    """Start the recording of the program that ``uncork run --arm`` with this process id runs."""
    note = _register() / str(pid)
    try:
        folder = Path(note.read_text(encoding="utf-8"))
    except OSError as absent:
        raise UncorkError("nothing_armed", pid=pid) from absent
    if not folder.is_dir():
        raise UncorkError("armed_folder_gone", path=folder, pid=pid)
    (folder / GO).touch()


def _register() -> Path:
    return Path(tempfile.gettempdir()) / f"uncork-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
