"""Takes from a process of Linux what Windows and macOS have not, as far as uncork asks for it; then runs its arguments.

python elsewhere.py uncork run …
"""

import builtins
import ctypes
import os
import runpy
import signal
import subprocess
import sys
from typing import Any

NAMES = {
    signal: ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "sigtimedwait"),
    os: (
        "getuid", "sched_getaffinity", "register_at_fork", "killpg", "setsid", "getpgrp", "tcgetpgrp", "sysconf",
        "sysconf_names", "statvfs",
    ),
}  # fmt: skip


def leave_linux() -> None:
    """Take it away: names, ``/proc`` and ``/sys``, the C library without a name, signals for a child but one."""
    import multiprocessing.popen_spawn_posix  # noqa: F401  # Python's own modules look at what is there at their import
    import tempfile  # noqa: F401

    import numpy as np  # noqa: F401
    import psutil  # noqa: F401

    for module, names in NAMES.items():
        for name in names:
            vars(module).pop(name, None)
    for name in ("resource", "fcntl", "termios", "pwd"):
        sys.modules[name] = None  # type: ignore[assignment]
    _hide_system_files()
    signal.CTRL_C_EVENT = 0  # type: ignore[attr-defined]
    subprocess.Popen.send_signal = _send  # type: ignore[method-assign]
    subprocess.Popen.terminate = lambda child: os.kill(child.pid, 9)  # type: ignore[method-assign]


def _hide_system_files() -> None:
    opened, exists, library = builtins.open, os.path.exists, ctypes.CDLL

    def is_hidden(path: object) -> bool:
        return isinstance(path, str) and path.startswith(("/proc/", "/sys/"))

    def open_shown(path: Any, *rest: Any, **named: Any) -> Any:
        if is_hidden(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return opened(path, *rest, **named)

    class Named(library):
        def __init__(self, name: str, *rest: Any, **named: Any) -> None:
            if name is None:
                raise TypeError("argument of type 'NoneType' is not iterable")
            super().__init__(name, *rest, **named)

    builtins.open = open_shown
    os.path.exists = lambda path: not is_hidden(path) and exists(path)
    ctypes.CDLL = Named  # type: ignore[misc]


def _send(child: "subprocess.Popen[bytes]", number: int) -> None:
    """Do as Windows: one signal ends the process, others cannot be sent."""
    if number != signal.SIGTERM:
        raise ValueError(f"Unsupported signal: {number}")
    child.terminate()


if __name__ == "__main__":
    leave_linux()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
