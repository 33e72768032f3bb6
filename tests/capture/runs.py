"""Runs small programs under the recorder, as ``uncork run`` does, and reads back what it wrote."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from uncork.capture.versions import why_no_stacks

DRIVER = """
import json, sys
from pathlib import Path
from uncork.capture import CaptureOptions, record
from uncork.capture.supervisor import end_as
folder, options, module, *argv = sys.argv[1:]
result = record(argv, module=module == "m", into=Path(folder), options=CaptureOptions(**json.loads(options)))
(Path(folder) / "result.json").write_text(json.dumps({"problem": result.problem, "exit_code": result.exit_code}))
end_as(result)
"""
QUICK_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True)
class Run:
    """What a program did under the recorder.

    Args:
        code: Return code, negative for a signal.
        out: Standard output.
        err: Standard error.
        folder: The run folder.
    """

    code: int
    out: str
    err: str
    folder: Path

    def told(self, rank: int | None = None) -> dict:
        """Return recording.json of the run, or of one rank."""
        home = self.folder if rank is None else self.folder / f"rank{rank}"
        return json.loads((home / "recording.json").read_text(encoding="utf-8"))

    def window_names(self, rank: int = 0) -> list[str]:
        """Return the names of a rank's windows in order."""
        return [window["name"] for window in self.told(rank)["windows"]]

    def result(self) -> dict:
        """Return what `record` returned."""
        return json.loads((self.folder / "result.json").read_text(encoding="utf-8"))


def command(folder: Path, argv: list[str], *, module: bool = False, **options: object) -> list[str]:
    """Return the command that records a program."""
    return [sys.executable, "-c", DRIVER, str(folder), json.dumps(options), "m" if module else "s", *argv]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of all test programs: one thread, no files beside the sources."""
    return {**os.environ, **QUICK_ENVIRONMENT, **more}


def record(
    folder: Path,
    argv: list[str],
    *,
    cwd: Path,
    module: bool = False,
    timeout: float = 120,
    env: dict[str, str] | None = None,
    **options: object,
) -> Run:
    """Run a program under the recorder to its end."""
    done = subprocess.run(
        command(folder, argv, module=module, **options),
        cwd=cwd,
        env=environment(**(env or {})),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr, folder)


def no_stacks() -> list[str]:
    """Return the notes of every recording on a Python on which torch writes no stacks."""
    import torch

    note = why_no_stacks(torch)
    return [note] if note else []


def plain(argv: list[str], *, cwd: Path, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a program without the recorder."""
    return subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
