"""Turn: something of ours that a thread beside the program has done on the main thread, between two bytecodes.

The interpreter offers that to C (``Py_AddPendingCall``, the way of signal handlers, without a signal). What a handler
of the program's, or Ctrl-C, raises while we are there belongs to the program. It must not leave the callback: ctypes
would print it, and the program would get a SystemError instead. Nor can it be raised anew from inside, since the
interpreter looks for such things after each call, the callback's own included. So the thread beside raises it once we
are out.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable

from uncork.capture.apart import is_theirs

IMPORTING = "<frozen importlib"
"""How the file of Python's import system begins."""
POLL_S = 0.02
"""Time between two looks at whether the main thread has come to it."""


class Turn:
    """One thing to do on the main thread, as often as it is asked for.

    Args:
        what: What to do there.
    """

    def __init__(self, what: Callable[[], object]) -> None:
        self._what = what
        self._is_due = False
        self._theirs: type[BaseException] | None = None
        self._callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._take)

    def ask(self) -> None:
        """Have it done, and return when it is done; called on a thread beside the program.

        Nothing is done where the interpreter's list of calls is full, nor amid the import of a module: its locks do not
        bear another import in between. Waits as long as it takes, since the interpreter may call back for as long.
        """
        self._is_due = True
        if ctypes.pythonapi.Py_AddPendingCall(self._callback, None):
            self._is_due = False
        while self._is_due:
            time.sleep(POLL_S)
        theirs, self._theirs = self._theirs, None
        if theirs is not None:
            main = ctypes.c_ulong(threading.main_thread().ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(theirs))

    def _take(self, _: object) -> int:
        theirs: type[BaseException] | None = None
        try:
            if not sys._getframe(1).f_code.co_filename.startswith(IMPORTING):
                self._what()
        except Exception as raised:  # a fault of ours ends here
            theirs = type(raised) if is_theirs(raised) else None
        except BaseException as raised:
            theirs = type(raised)
        self._theirs = theirs
        self._is_due = False
        return 0
