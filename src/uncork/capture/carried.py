"""What a signal's handler raises in a callback of the collector, which Python would print and forget."""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any

CARRIER = getattr(signal, "SIGURG", None)
"""Signal that a process ignores unless it asks for it; for a moment it is ours."""
AFTER_S = 0.001


def carry_on(code: CodeType, forget: Callable[[], None]) -> None:
    """Have what is raised in a callback of ours raised in the program right after the collection.

    Ctrl-C, or a signal that the program handles, waits while Python collects, and falls into the first function in
    Python that follows: the callback, out of which nothing is raised. Without us it is the program's next line.

    Args:
        code: The callback's.
        forget: Called first: the callback was not run to its end.
    """
    show = sys.unraisablehook

    def unraisablehook(told: Any) -> None:
        link = told.exc_traceback
        if link is None or link.tb_frame.f_code is not code or not _raise_soon(told.exc_value, link.tb_next):
            show(told)
        else:
            forget()

    sys.unraisablehook = unraisablehook


def _raise_soon(error: BaseException | None, trace: TracebackType | None) -> bool:
    """Return whether an error will be raised in the main thread; on others no handler runs, nor is one set there.

    By a signal: it ends a wait that the program is in by then, as the one that was lost would have.
    """
    on_main = threading.current_thread() is threading.main_thread()
    if error is None or CARRIER is None or not on_main or (before := signal.getsignal(CARRIER)) is None:
        return False

    def again(_number: int, _frame: Any) -> None:
        signal.signal(CARRIER, before)
        raise error.with_traceback(trace)

    signal.signal(CARRIER, again)
    _thread.start_new_thread(_send, ())
    return True


def _send() -> None:
    time.sleep(AFTER_S)  # by then the hook has been left
    signal.pthread_kill(threading.main_thread().ident or 0, CARRIER or 0)
