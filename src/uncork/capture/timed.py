"""TimedWindows: windows of fixed time for programs that show no step at all (pure tensor code, graph replay).

A thread beside the program has them begun and ended on the main thread: profilers must start and stop there.
"""

import _thread
import sys
import time
from pathlib import Path
from typing import Any

from uncork.capture import plan
from uncork.capture.apart import is_capturing
from uncork.capture.left_open import is_in_compiler
from uncork.capture.plan import Stage
from uncork.capture.turns import Turn
from uncork.capture.windows import FILES

PATIENCE_S = 0.25
"""Time after the import of torch without a sign of a step, before fixed times are tried."""
LOOK_S = 0.15
"""First look: is torch at work at all, and how many operators does it run per second?"""
EVENTS_LEAST = 50
"""A look that saw fewer operators is thrown away; the program is still preparing."""
ORDER = (
    ("look", LOOK_S),
    ("light", 0.4),
    ("functions", 0.2),
    ("deep", 0.4),
    ("light", 2.0),
    ("functions", 1.0),
    ("deep", 2.0),
)
"""Windows and the seconds each lasts at most: short ones first, so that a program of two seconds is seen in each way;
longer ones replace them."""


class TimedWindows:
    """Runs the windows by the clock, until a step shows up.

    Args:
        recorder: The recorder whose windows these are.
    """

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._place = 0
        self._open = False
        self._length_s = ORDER[0][1]
        self._rate = 0.0
        self._pause_s = PATIENCE_S
        self._turn = Turn(self._take_turn)

    def start(self) -> None:
        """Begin to wait beside the program; the thread is not one that `threading` lists."""
        _thread.start_new_thread(self._loop, ())

    @property
    def _name(self) -> str:
        return ORDER[self._place][0] if self._place < len(ORDER) else ""

    def _is_needed(self) -> bool:
        recorder = self._recorder
        return self._name != "" and not (recorder.broken or recorder.ended or recorder.finder.started)

    def _loop(self) -> None:
        """Ask for a turn on the main thread whenever one is due."""
        try:
            while self._is_needed():
                time.sleep(self._length_s if self._open else self._pause_s)
                if self._is_needed():
                    self._turn.ask()
        except Exception:
            self._place = len(ORDER)

    def _take_turn(self) -> None:
        """Start or stop a window; runs on the main thread, at any place of the program."""
        # The engine restores the thread's profiler when backward ends: one begun or ended inside would be lost.
        torch = self._recorder.torch
        is_free = torch._C._current_graph_task_id() < 0 and not is_capturing(torch)
        if not self._open and is_in_compiler(sys._getframe()):
            return
        if not self._open and self._name != "functions" and self._recorder.observer.is_held_back():
            self._recorder.schedule.held_since = 0
            return
        if not self._recorder.busy and self._is_needed() and is_free:
            self._recorder.guard(self._stop if self._open else self._start)

    def _start(self) -> None:
        if self._recorder.orders.options.arm and not self._recorder.may_begin():
            return
        name = "light" if self._name == "look" else self._name
        self._open = begin_window(self._recorder, name)
        if not self._open:
            self._advance()

    def _stop(self) -> None:
        self._open = False
        if self._name != "functions":
            self._recorder.schedule.held_since = None
        events = end_window(self._recorder, EVENTS_LEAST if self._name in ("look", "light") else 0)
        if self._name in ("look", "light"):
            if events is None:
                self._place, self._length_s = 0, ORDER[0][1]
                self._pause_s = min(self._pause_s * 1.5, 30.0)
                return
            self._rate = events / self._length_s
        self._advance()

    def _advance(self) -> None:
        """Go to the next window, as long as its trace stays within bounds."""
        self._place += 1
        self._pause_s = 0.2
        bound = {"light": plan.EVENTS_MOST_LIGHT / 4, "deep": plan.EVENTS_MOST_DEEP / 3}.get(self._name)
        longest_s = ORDER[self._place][1] if self._name else 0.0
        self._length_s = min(longest_s, bound / self._rate) if bound and self._rate else longest_s


def begin_window(recorder: Any, name: str) -> bool:
    """Return whether a window of fixed time could begin here."""
    recorder.timed = True
    recorder.journal.garbage.marked = 0
    return bool(recorder.observer.begin(Stage(name, 1, 1, 0)))


def end_window(recorder: Any, least: int) -> int | None:
    """End the window; return its events, or None (and nothing is kept) where it saw fewer than `least`."""
    look = Path(recorder.orders.folder) / f"look.{recorder.pid}"
    window = recorder.observer.end_timed(look)
    if window is None:
        return None
    events: int = window.facts.get("events", 0)
    if events - recorder.journal.garbage.marked < least:  # imports make garbage, and are no work of torch's
        look.unlink()
        return None
    look.replace(recorder.home() / FILES[window.stage.name])
    recorder.schedule.keep(window)
    recorder.write(ended=False)
    return events
