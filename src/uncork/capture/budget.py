"""Budget: a window of one huge step is cut before its trace fills the memory.

Kineto keeps 250 B per event while it collects and seven times that when it stops (measured on torch 2.13), and tells
nobody how many it has. So events are estimated from what a hook can see: module calls and autograd nodes. Code that
shows neither (pure tensor code between two boundaries) is cut by the clock, through the interpreter's pending calls.
"""

import _thread
import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

EVENTS_PER_CALL, EVENTS_PER_NODE = 15, 12
"""Events that come with one module call and with one autograd node, forward and backward (rough; a bound, no count)."""
CHECK_EVERY = 64
"""Module calls between two looks at the budget."""
SILENT_S = 1.0
"""Time a window of one unfinished step may run without a module call."""


class Budget:
    """Watches one window, and has it cut when it grows too large.

    Args:
        torch: The program's torch.
        most_events: Events the window may hold.
        cut: Ends the window; called on the thread that is recorded.
    """

    def __init__(self, torch: Any, most_events: int, cut: Callable[[], None]) -> None:
        self.calls = 0
        self._sequence = torch._C._autograd._get_sequence_nr
        self._first = self._sequence()
        self._most_events = most_events
        self._cut = cut
        self._over = False
        self._callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._turn)

    def called(self) -> None:
        """Count a module's call, and cut the window if there are too many events by now."""
        self.calls += 1
        if self.calls % CHECK_EVERY == 0 and not self._over:
            nodes = self._sequence() - self._first
            if self.calls * EVENTS_PER_CALL + nodes * EVENTS_PER_NODE > self._most_events:
                self._over = True
                self._cut()

    def watch_silence(self) -> None:
        """Cut the window by the clock if no module is called in it; only the main thread can be reached so."""
        if threading.current_thread() is threading.main_thread():
            _thread.start_new_thread(self._wait, ())

    def end(self) -> None:
        """Note that the window is over, or that a whole step of it is: from there on its size is known."""
        self._over = True

    def _wait(self) -> None:
        until = time.monotonic() + SILENT_S
        while time.monotonic() < until and not self._over:
            time.sleep(0.05)
        if not self._over and not self.calls:
            ctypes.pythonapi.Py_AddPendingCall(self._callback, None)

    def _turn(self, _: object) -> int:
        """Cut on the main thread; a Ctrl-C that falls into this callback is the program's."""
        try:
            if not self._over:
                self._over = True
                self._cut()
        except BaseException:
            _thread.interrupt_main()
        return 0
