"""Threads: what the model did on those that are not recorded, and when one of them is the better to record."""

import sys
import threading
import time
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncork.capture.recorder import Recorder

NOBODY = -1
"""Instead of a thread that has ended: the system may give its number to another."""
SILENT_NS = 500_000_000
"""A thread without a step for this long may be one that only waits for others by now …"""
SILENT_STEPS = 10
"""… if that is also this many times its longest step."""
KINDS = ("forwards", "backwards", "updates")
"""Calls of outermost modules (beside a thread that trains, those are seen that fall into its windows), backward passes,
and steps of optimisers."""


class Work:
    """What the model did on a thread that is not recorded; counts of `KINDS`, and of steps that it marked.

    Args:
        thread: Identity of the thread.
    """

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.forwards = self.backwards = self.updates = self.marks = 0

    @property
    def trains(self) -> bool:
        """Return whether the thread trains a model."""
        return self.backwards > 0 or self.updates > 0

    @property
    def steps(self) -> int:
        """Return how many steps the thread made, at most."""
        return self.updates or self.backwards or self.forwards


class _Own(threading.local):
    work: Work | None = None


class Threads:
    """Tells whose steps are recorded; `heir` is the work of a thread that the recorded one is to make way for.

    Args:
        recorder: What records.
    """

    def __init__(self, recorder: "Recorder") -> None:
        self.heir: Work | None = None
        self._recorder = recorder
        self._door = threading.Lock()
        self._own = _Own()
        self._former: dict[int, Work] = {}
        self._others = dict.fromkeys(("others", *KINDS, "marks"), 0)

    def hears(self, kind: str) -> bool:
        """Return whether this thread's steps are recorded, from now on perhaps; what happens on others is counted.

        Args:
            kind: What the thread did: one of `KINDS`, or ``marks``.
        """
        recorder = self._recorder
        if recorder.broken:
            return False
        if recorder.is_on_thread():
            return not self.is_shut() and (recorder.thread is not None or not in_engine(recorder.torch))
        return not in_engine(recorder.torch) and self._takes_over(self._did(kind))

    def is_shut(self) -> bool:
        """Return whether a thread is about to take the recorded one's place, so that nothing may begin there."""
        return self._door.locked()

    def makes_way(self) -> bool:
        """Return whether the recorded thread, which calls this, leaves the recording to another that lives still."""
        heir, self.heir = self.heir, None
        if heir is None or heir.thread not in sys._current_frames():
            return False
        self._recorder.observer.drop()
        self._begin(heir, threading.get_ident())
        return True

    def _takes_over(self, work: Work) -> bool:
        """Return whether this thread is recorded from now on instead of the one that was.

        That one may be anywhere. It is left alone amid work of ours, and asked to make way where a profiler is on,
        which only it can stop.
        """
        recorder, former = self._recorder, self._recorder.thread
        if recorder.ending or not self._is_better(work):
            return False
        if recorder.observer.is_bound():
            self.heir = work
        elif self._door.acquire(blocking=False):  # first, so that the other one comes into nothing of ours meanwhile
            try:
                if not recorder.observer.is_bound() and not is_in(former, type(recorder).guard.__code__):
                    self._begin(work, former)
                    return True
                self.heir = work
            finally:
                self._door.release()
        return False

    def _is_better(self, work: Work) -> bool:
        """Return whether a thread is to be recorded instead: training goes before inference, then more steps.

        Of two that do the same the recorded one stays while it goes on, so that its windows are of one loop.
        """
        recorder, finder = self._recorder, self._recorder.finder
        if finder.rule == "mark" or work.marks:  # the program says itself what its steps are
            return finder.rule != "mark"
        if work.trains is not finder.trains:
            return work.trains
        if work.steps <= finder.seen or recorder.schedule.is_done():
            return False
        silent_ns = time.perf_counter_ns() - recorder.last_signal_ns
        if recorder.thread == NOBODY or silent_ns <= SILENT_NS:
            return recorder.thread == NOBODY
        steps = tuple(recorder.journal.steps)  # at once: the other thread may add one meanwhile
        return silent_ns > SILENT_STEPS * max((row[3] for row in steps), default=0)

    def _did(self, kind: str) -> Work:
        """Return this thread's work, with one more of a kind."""
        work = self._own.work
        if work is None:
            work = self._former.pop(threading.get_ident(), None)
            if work is None:
                work = Work(threading.get_ident())
                self._others["others"] += 1
            self._own.work = work
        setattr(work, kind, getattr(work, kind) + 1)
        self._others[kind] += 1
        return work

    def _begin(self, work: Work, former: int | None) -> None:
        """Begin on the thread that did a work, which is its own now; the former's steps are another's."""
        recorder, finder = self._recorder, self._recorder.finder
        recorder.thread, self.heir = work.thread, None
        for kind in KINDS:
            self._others[kind] -= getattr(work, kind)
            setattr(work, kind, 0)
        self._others["updates" if finder.trains else "forwards"] += finder.seen
        if former is not None:
            self._former[former] = Work(former)
        recorder.begin_on_thread()

    def to_json(self) -> dict[str, int]:
        """Return how many other threads ran a model, and what they did in all; nothing where there was none."""
        told = {key: self._others[key] for key in ("others", *KINDS)}
        return told if any(told[kind] for kind in KINDS) else {}


def is_in(thread: int | None, code: CodeType) -> bool:
    """Return whether a thread runs a function, or something that the function called."""
    frame = sys._current_frames().get(thread or NOBODY)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


def in_engine(torch: Any) -> bool:
    """Return whether this thread is inside a backward: one of autograd's own, unless backward was called here."""
    return bool(torch._C._current_graph_task_id() >= 0)
