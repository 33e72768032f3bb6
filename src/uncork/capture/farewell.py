"""Farewell: notices the end of a thread on that thread, while torch's state of it is still there."""

import threading
import weakref
from collections.abc import Callable
from typing import Protocol


class Leaves(Protocol):
    """What wants to know that a thread ends."""

    def guard(self, what: Callable[[], object]) -> None:
        """Do something of ours so that no fault of it can reach the program."""

    def leave_thread(self) -> None:
        """Close what is open on the thread that ends."""


class Farewell:
    """Lives in a thread's own storage, so that it goes when the thread ends, still on that thread.

    Args:
        recorder: Whose window is open on the thread.
    """

    def __init__(self, recorder: Leaves) -> None:
        self._recorder = weakref.ref(recorder)
        self._thread = threading.get_ident()

    def __del__(self) -> None:
        """End the window while torch's own state of the thread is still there."""
        recorder = self._recorder()
        if recorder is not None and threading.get_ident() == self._thread:
            recorder.guard(recorder.leave_thread)
