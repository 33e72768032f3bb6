"""Budget: a window is cut before its trace fills the memory, or when its step does not end.

Kineto keeps a few hundred bytes per event while it collects and five to seven times that when it stops, and tells
nobody how many it has. So two bounds from above are watched: the time that has passed, at the highest rate of events
that can be, and the memory that the process has gained. Where both are over the limit the window is cut; what it then
turns out to hold gives the true rate, by which a window that was cut for nothing is begun again.
"""

import _thread
import ctypes
import functools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from uncork.capture.apart import is_capturing
from uncork.capture.turns import Turn
from uncork.records import dataclass

EVENTS_PER_CALL, EVENTS_PER_NODE = 15, 12
"""Events that come with one module call and with one autograd node, forward and backward (rough, no count)."""
CHECK_EVERY = 64
"""Module calls between two looks at the budget."""
LOOK_S = 0.02
"""Time between two looks of the thread beside the program."""
FASTEST_PER_NS = 1.2e-3
"""Events per nanosecond that a thread can make while they are recorded (tiny operators, torch 2.13)."""
PATIENCE_NS, LONGEST_STEPS = 20_000_000_000, 10
"""A window may last this long and so many times the longest step seen; a step that takes more has left the loop."""


@dataclass(frozen=True)
class Room:
    """What a window may hold.

    Args:
        events: Events at most.
        bytes_per_event: What the profiler keeps per event while it collects.
        events_per_ns: Bound of the rate of events.
    """

    events: int
    bytes_per_event: int
    events_per_ns: float = FASTEST_PER_NS

    def at_rate(self, events_per_ns: float) -> "Room":
        """Return the same room with a bound of the rate that was measured."""
        return replace(self, events_per_ns=min(events_per_ns, FASTEST_PER_NS))


class Budget:
    """Watches one window.

    Args:
        torch: The program's torch.
        room: What the window may hold.
        longest_ns: The longest step so far.
    """

    def __init__(self, torch: Any, room: Room, longest_ns: int = 0) -> None:
        self.calls = 0
        self.is_full = False
        self._room = room
        self._torch = torch
        self._sequence = torch._C._autograd._get_sequence_nr
        self._first = self._sequence()
        self._begun_ns = time.perf_counter_ns()
        self._begun_bytes = _memory_bytes()
        self._until_ns = self._begun_ns + PATIENCE_NS + LONGEST_STEPS * longest_ns

    def guess(self) -> int:
        """Return about how many events there are, from what a hook can see: module calls and autograd nodes."""
        return int(self.calls * EVENTS_PER_CALL + (self._sequence() - self._first) * EVENTS_PER_NODE)

    def has_to_wait(self) -> bool:
        """Return whether no window may end here: in backward, of which nothing more is recorded, or in a capture."""
        inside = bool(self._torch._C._current_graph_task_id() >= 0)
        if inside:
            self._torch.autograd._enable_record_function(False)  # this thread only; the engine sets it per node
        return inside or is_capturing(self._torch)

    def lasted_ns(self) -> int:
        """Return how long the window has been open."""
        return time.perf_counter_ns() - self._begun_ns

    def called(self) -> bool:
        """Count a module's call; return whether the window has to be cut here."""
        self.calls += 1
        if self.calls % CHECK_EVERY == 0 and self.guess() > self._room.events:
            self.is_full = True
        return self.is_full

    def look(self) -> bool:
        """Return whether the window is full by the clock and by memory; asked from a thread beside the program."""
        now_ns = time.perf_counter_ns()
        if now_ns > self._until_ns:
            self.is_full = True
        elif (now_ns - self._begun_ns) * self._room.events_per_ns > self._room.events:
            gained = max(now - before for now, before in zip(_memory_bytes(), self._begun_bytes, strict=True))
            self.is_full = not self._begun_bytes[1] or gained > self._room.events * self._room.bytes_per_event
        return self.is_full


class Guards(Protocol):
    """Who keeps faults of ours from the program."""

    @property
    def busy(self) -> bool:
        """Return whether this thread is in work of ours."""

    def guard(self, what: Callable[[], object]) -> None:
        """Do something of ours so that no fault of it can reach the program."""


class Watch:
    """Looks at a budget beside the program, and has the window cut on the main thread when it is full.

    Other threads cannot be interrupted between two bytecodes: there the next module call or update cuts it.

    Args:
        budget: The budget.
        recorder: Guards what is done here.
        cut: Ends the window here, in the middle of a step.
    """

    def __init__(self, budget: Budget, recorder: Guards, cut: Callable[[], None]) -> None:
        self.budget = budget
        self._recorder, self._cut = recorder, cut
        self._over = False
        self._turn = Turn(self._take_turn)
        self._is_main = threading.current_thread() is threading.main_thread()
        _thread.start_new_thread(self._loop, ())

    def called(self) -> None:
        """Count a module's call, and cut the window where that fills it."""
        if self.budget.called():
            self.cut_if_full()

    def cut_if_full(self) -> None:
        """Cut the window if the budget is full; called on the thread that is recorded.

        Inside backward it is cut later: at its end torch's engine sets the profiler back as it was, and one that went
        inside would fill the memory for ever. Until then the operators of the running node are left out. While a CUDA
        graph is captured it is cut later too: the end of a trace waits for the device, which would spoil the graph.
        """
        if not self.budget.is_full or self._over:
            return
        if self.budget.has_to_wait():
            return
        self._over = True
        self._recorder.guard(self._cut)

    def end(self) -> None:
        """Note that the window is over."""
        self._over = True

    def _loop(self) -> None:
        """Look until the window is over."""
        try:
            while not self._over:
                if self.budget.look() and self._is_main:
                    self._turn.ask()
                time.sleep(LOOK_S)
        except Exception:
            self._is_main = False

    def _take_turn(self) -> None:
        """Cut on the main thread, if not in the midst of our own work."""
        if not self._recorder.busy:
            self.cut_if_full()


class _Heap(ctypes.Structure):
    """What glibc's ``mallinfo2`` returns."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    ))  # fmt: skip


@functools.cache
def _mallinfo() -> Callable[[], _Heap] | None:
    """Return glibc's account of the heap, or None in another C library; Windows has no library without a name."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    ask.restype = _Heap
    return ask


def _memory_bytes() -> tuple[int, int]:
    """Return the memory in use on the heap and the memory that the process occupies, 0 where nothing tells.

    Events fill what was freed on the heap before the process grows; another allocator than glibc's shows only there.
    """
    ask = _mallinfo()
    heap = ask() if ask else None
    used = heap.uordblks + heap.hblkhd if heap else 0
    try:
        with open("/proc/self/statm", "rb") as file:
            return used, int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return used, 0
