"""How the program is started: which command, in which environment."""

import os
import shutil
import sys
from pathlib import Path

from uncork.capture.options import ENVIRONMENT, CaptureOptions, Orders, package_folder
from uncork.errors import UsageError

LEFT_OUT = "\n" if os.sep == "\\" else "\n\\"
"""Signs that torch's profiler leaves out of the name of the file it writes, so that it writes to another one."""


def refuse_unwritable(folder: Path) -> None:
    """Refuse a run folder into whose path torch's profiler writes no trace."""
    if set(LEFT_OUT) & set(str(folder)):
        raise UsageError("run_folder_signs", path=ascii(str(folder)))


def command_for(argv: list[str], *, module: bool) -> list[str]:
    """Return the command that runs the program: this Python for scripts and modules, itself for a launcher.

    Args:
        argv: The program and its arguments.
        module: The program is the name of a module, as in ``python -m``.
    """
    if not argv:
        raise UsageError("no_program")
    if module:
        return [sys.executable, "-m", *argv]
    program = argv[0]
    if os.path.isdir(program):
        if not os.path.isfile(os.path.join(program, "__main__.py")):
            raise UsageError("folder_without_main", path=program)
        return [sys.executable, *argv]
    if os.path.isfile(program):
        return [sys.executable, *argv] if _is_python(program) else list(argv)
    beside_python = os.pathsep.join([os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)])
    found = shutil.which(program, path=beside_python) if not program.endswith(".py") else None
    if found is None:
        raise UsageError("no_program_file", path=program)
    return [found, *argv[1:]]


def _is_python(path: str) -> bool:
    """Return whether a file is for Python: by its ending, or by its first line; a plain file is taken for a script."""
    if path.endswith((".py", ".pyc", ".pyz")) or not os.access(path, os.X_OK):
        return True
    with open(path, "rb") as file:
        first = file.readline(200)
    return first.startswith(b"#!") and b"python" in first


def environment_for(folder: Path, options: CaptureOptions) -> dict[str, str]:
    """Return the environment that lets the recorder into every Python process of the program."""
    package = package_folder()
    told = dict(os.environ)
    told[ENVIRONMENT] = Orders(str(folder), str(package), options).to_json()
    inject = str(package / "capture" / "inject")
    before = told.get("PYTHONPATH")
    told["PYTHONPATH"] = inject + (os.pathsep + before if before else "")
    return told
