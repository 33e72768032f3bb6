"""Ending: how a program is asked to end where no Ctrl-C can be sent to it.

Jobs that a shell runs in the background ignore Ctrl-C, and on Windows it goes to all of a console or to none. A signal
that nothing ignores would end the program without its own clean-up. So a thread beside it looks for a note of the
supervisor's, and then ends the main thread as `sys.exit` would, or where Ctrl-C is heard as that would.
"""

import _thread
import os
import signal
import time
from pathlib import Path

LOOK_S = 0.1
"""Time between two looks for the note."""
CANNOT_BE_SENT = hasattr(signal, "CTRL_C_EVENT")
"""On Windows a Ctrl-C cannot be sent to one process alone."""


def note_for(pid: int, folder: str | Path) -> Path:
    """Return the file of the run folder that asks a process to end."""
    return Path(folder) / f".end.{pid}"


def obey(folder: str) -> None:
    """Wait beside the program for the note that asks this process to end, if Ctrl-C will not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN or CANNOT_BE_SENT:
        _thread.start_new_thread(_wait, (str(note_for(os.getpid(), folder)),))


def _wait(note: str) -> None:
    """End the main thread once the note is there, unless the program was sent a Ctrl-C that it hears by now."""
    while not os.path.exists(note):
        time.sleep(LOOK_S)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        if CANNOT_BE_SENT:
            _thread.interrupt_main()
        return
    import ctypes
    import threading

    main = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(SystemExit))
