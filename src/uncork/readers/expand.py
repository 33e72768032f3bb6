"""expand: what people type (files, folders of ranks, globs, TensorBoard log folders) → the paths to read."""

import glob
import json
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from uncork.errors import UnreadableError
from uncork.recording import RunFolder

_SUFFIXES = (".json", ".json.gz", ".json.zst", ".json.zip", ".pickle", ".pkl", ".prof", ".pstats", ".gz", ".zst")
_TRACES = (re.compile(r"\.pt\.trace\.json(?:\.gz|\.zst)?$"), re.compile(r"^trace_view\.json(?:\.gz|\.zst)?$"))
"""TensorBoard logs, and torch_npu's folders, in which parts of the same trace lie a second time."""
_SMALL_BYTES = 1 << 20
"""Settings and results that lie beside recordings are no larger."""
_DIGITS = re.compile(r"(\d+)")


def expand(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files and run folders that some paths stand for, ranks in their natural order, each once.

    A link, such as one to the latest run, is what it leads to.
    """
    found: dict[Path, Path] = {}
    for given in paths:
        try:
            for path in _one(Path(given)):
                found.setdefault(Path(os.path.realpath(path)), path)  # of links in a circle `resolve` makes a fault
        except OSError as error:
            raise UnreadableError("cannot_open", path=error.filename or given, reason=error.strerror) from error
    _of_one_job([path for path in found.values() if RunFolder.is_one(path)])
    return list(found.values())


def _of_one_job(runs: Sequence[Path]) -> None:
    """Hold run folders to be one job's, as of several machines: no rank is in two of them."""
    ranks = [home.name for run in runs for home in RunFolder(run).ranks()]
    if len(set(ranks)) < len(ranks):
        *_, earlier, latest = sorted(runs, key=lambda run: (run / RunFolder.RECORDING).stat().st_mtime)
        raise UnreadableError("several_runs", earlier=earlier, latest=latest)


def _one(path: Path) -> list[Path]:
    if path.is_file() or RunFolder.is_one(path):
        return [path]
    if path.is_dir():
        return _in_folder(path)
    matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural)  # noqa: PTH207 — absolute patterns too
    if not matches:
        raise UnreadableError("not_there", path=path)
    return [
        file
        for match in matches
        for file in (_in_folder(match) if match.is_dir() and not RunFolder.is_one(match) else [match])
    ]


def _in_folder(folder: Path) -> list[Path]:
    """Return a folder's recordings: those of a TensorBoard log or of Ascend, else every file that may be one."""
    files = sorted(filter(_is_plain, folder.rglob("*")), key=_natural)
    runs = [path for path in folder.iterdir() if RunFolder.is_one(path)]
    if runs:
        return sorted(runs, key=_natural)
    named = ([path for path in files if form.search(path.name)] for form in _TRACES)
    traces = next(filter(None, named), None) or [path for path in files if path.name.lower().endswith(_SUFFIXES)]
    if not traces:
        raise UnreadableError("folder_without_recordings", path=folder)
    return [path for path in traces if not _is_beside(path)] or traces


def _is_beside(path: Path) -> bool:
    """Return whether a file is sound JSON without any events, like the settings of the job that was recorded."""
    if path.suffix.lower() != ".json" or path.stat().st_size > _SMALL_BYTES:
        return False
    raw = path.read_bytes()
    try:
        text = raw.decode(json.detect_encoding(raw))
        return "traceEvents" not in text and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_plain(path: Path) -> bool:
    """Return whether a path is a file itself; of one that we may not look at, no."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _natural(path: Path) -> list[tuple[int, str]]:
    """Return a key that puts rank 2 before rank 10."""
    return [(int(part), "") if part.isdigit() and len(part) < 19 else (-1, part) for part in _DIGITS.split(str(path))]
