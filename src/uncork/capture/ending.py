"""Ending: how a program that ignores Ctrl-C, as jobs do that a shell runs in the background, is asked to end.

A signal that nothing ignores would end it without its own clean-up. So a thread beside the program looks for a note of
the supervisor's, and then ends the main thread as `sys.exit` would.
"""

import _thread
import os
import signal
import time
from pathlib import Path

LOOK_S = 0.1
"""Time between two looks for the note."""


def note_for(pid: int, folder: str | Path) -> Path:
    """Return the file of the run folder that asks a process to end."""
    return Path(folder) / f".end.{pid}"


def obey(folder: str) -> None:
    """Wait beside the program for the note that asks this process to end, if Ctrl-C will not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        _thread.start_new_thread(_wait, (str(note_for(os.getpid(), folder)),))


def _wait(note: str) -> None:
    """Raise `SystemExit` on the main thread once the note is there, unless the program hears Ctrl-C by now."""
    while not os.path.exists(note):
        time.sleep(LOOK_S)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        return
    import ctypes
    import threading

    main = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(SystemExit))
