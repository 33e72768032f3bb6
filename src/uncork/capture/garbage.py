"""Garbage: what Python's collector takes of the steps, told by Python itself through ``gc.callbacks``."""

import contextlib
import gc
import threading
import time
from typing import Any, Protocol

from uncork.capture.apart import is_theirs
from uncork.capture.carried import carry_on

REGION = "Python GC"
"""Name of a collection in a trace, as torch's own profiler spells it."""


class Traced(Protocol):
    """Says whether a trace is being recorded."""

    on: bool


class Garbage:
    """Adds up the collections inside steps that no profiler observes, and marks those in traces."""

    def __init__(self) -> None:
        self.marked = 0
        self.forget()
        self._trace: Traced | None = None
        self._region: Any = None
        self._open: dict[int, Any] = {}  # by the thread that collects, which may let another run meanwhile
        self._begun_ns: int | None = None

    def watch(self, torch: Any, trace: Traced) -> None:
        """Be told of collections from now on; the program's own callbacks stay as they are.

        Args:
            torch: The program's torch.
            trace: Whether collections are to be marked now.
        """
        self._region, self._trace = torch._C._profiler._RecordFunctionFast, trace
        gc.callbacks.append(self._told)
        carry_on(Garbage._told.__code__, self._interrupted)

    def forget(self) -> None:
        """Count from nothing: the steps so far were not the loop's."""
        self.is_timed = False
        self.collections = [0, 0, 0]
        self.dur_ns = self.longest_ns = 0
        self.steps = self.steps_ns = 0
        self._running = [0, 0, 0]
        self._running_ns = self._running_longest_ns = 0

    def close(self) -> None:
        """End the mark of a collection that runs here: a trace may end amid one, and no region may outlive it."""
        region = self._open.pop(threading.get_ident(), None)
        if region is not None:
            region.__exit__(None, None, None)

    def _interrupted(self) -> None:
        """Leave a collection of which only the begin or the end was heard."""
        self._begun_ns = None
        self.close()

    def end(self) -> None:
        """Hear no more."""
        self._trace, self.is_timed = None, False
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._told)

    def begin_step(self, *, is_timed: bool) -> None:
        """Begin a step; collections since the last one's end were in none: in one that was struck, or between two.

        Args:
            is_timed: No profiler observes it.
        """
        self.is_timed = is_timed
        if self._running_ns:
            self._running = [0, 0, 0]
            self._running_ns = self._running_longest_ns = 0

    def add_step(self, dur_ns: int) -> None:
        """Count a step that is over, with its collections; of one that a profiler observed, neither."""
        if self.is_timed:
            self.steps += 1
            self.steps_ns += dur_ns
            if self._running_ns:
                self.collections = [old + new for old, new in zip(self.collections, self._running, strict=True)]
                self.dur_ns += self._running_ns
                self.longest_ns = max(self.longest_ns, self._running_longest_ns)
        self.begin_step(is_timed=False)

    def to_json(self) -> dict[str, object]:
        """Return the sums as recording.json holds them."""
        return {
            "steps": self.steps,
            "steps_ns": self.steps_ns,
            "collections": self.collections,
            "dur_ns": self.dur_ns,
            "longest_ns": self.longest_ns,
        }

    def _told(self, phase: str, about: dict[str, int]) -> None:
        """Take in the begin or the end of a collection; there is never one inside another."""
        try:
            if phase == "start":
                if self._trace is not None and self._trace.on:
                    region = self._region(REGION)
                    region.__enter__()
                    self._open[threading.get_ident()] = region
                    self.marked += 1
                self._begun_ns = time.perf_counter_ns()
                return
            begun_ns, self._begun_ns = self._begun_ns, None
            if self._open:
                self.close()
            elif self.is_timed and begun_ns is not None:
                took_ns = time.perf_counter_ns() - begun_ns
                self._running[about["generation"]] += 1
                self._running_ns += took_ns
                self._running_longest_ns = max(self._running_longest_ns, took_ns)
        except Exception as error:
            if is_theirs(error):
                raise
            self.end()  # none is watched from here on, and nothing of ours is thrown into the program
