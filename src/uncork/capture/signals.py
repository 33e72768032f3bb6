"""Relay: signals sent to the supervisor reach the program, once; the supervisor itself stays until the report."""

import os
import signal
import sys
import time
from types import FrameType, TracebackType
from typing import TypeVar

from typing_extensions import Self

PASSED_ON = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
    if hasattr(signal, name)
)
SI_KERNEL = 0x80
"""Origin of a signal that the terminal sent: the whole foreground group has it already, the program too."""


R = TypeVar("R", bound="Relay")


class Relay:
    """Holds the supervisor's signals while the program runs, and passes each on to it."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._early: list[int] = []
        self._before: dict[int, object] = {}
        self._can_wait = hasattr(signal, "sigtimedwait")

    def __enter__(self) -> Self:
        """Take over the signals."""
        for number in PASSED_ON:
            # One that is ignored (nohup, a job in the background) stays so, here and in the program, which inherits it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the signals back."""
        if self._can_wait and self._pid is not None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {*self._before, signal.SIGCHLD})
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def attach(self, pid: int) -> None:
        """Pass signals on to this process from now on, first those that came early."""
        self._pid = pid
        if self._can_wait:
            signal.pthread_sigmask(signal.SIG_BLOCK, {*self._before, signal.SIGCHLD})
        for number in self._early:
            self._send(number)

    def wait(self, seconds: float) -> None:
        """Wait for a signal or the end of the program, not longer than this."""
        if not self._can_wait:
            time.sleep(min(seconds, 0.05))
            return
        got = signal.sigtimedwait({*self._before, signal.SIGCHLD}, seconds)
        if got is not None and got.si_signo in self._before and got.si_code != SI_KERNEL:
            self._send(got.si_signo)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal outside `wait`: before the program is there, or where signals cannot be waited for."""
        del frame
        if self._pid is None:
            self._early.append(number)
        elif number not in (signal.SIGINT, signal.SIGQUIT) or not _from_terminal():
            self._send(number)

    def _send(self, number: int) -> None:
        if self._pid is not None:
            try:
                os.kill(self._pid, number)
            except ProcessLookupError:
                return


def _from_terminal() -> bool:
    """Return whether a keyboard's interrupt would have reached the program too: we share a foreground group.

    On Windows it reaches whoever shares the console, and `os.kill` would end the program at once.
    """
    if not hasattr(os, "tcgetpgrp"):
        return True
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp()  # type: ignore[union-attr]
    except (OSError, AttributeError, ValueError):
        return False
