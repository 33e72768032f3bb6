"""Recorder: what each step boundary of a process means for its windows, and where the recording stands."""

import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uncork.capture import settings
from uncork.capture.apart import apart, is_theirs
from uncork.capture.journal import Journal
from uncork.capture.memory_history import MemoryHistory
from uncork.capture.observer import Observer
from uncork.capture.options import Orders, Trigger
from uncork.capture.probes import TraceProbe
from uncork.capture.regions import Regions
from uncork.capture.schedule import Schedule
from uncork.capture.spans import SpanWriter
from uncork.capture.steps import Action, StepFinder
from uncork.capture.threads import NOBODY, Threads
from uncork.capture.windows import FILES

CALLS_LOOKED_AT = 64
"""Calls of outermost modules among which the model is looked for."""
WRITE_EVERY_NS = 2_000_000_000
ENDING_S = 2.0
"""Time that the end of the program waits for another thread to close its window."""


class Here(threading.local):
    """What a thread does: `busy` with work of ours."""

    busy = False


class Recorder:
    """Everything uncork does in one process of the program.

    Args:
        orders: What the supervisor asked for.
    """

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.pid = os.getpid()
        self.torch: Any = None
        self.finder = StepFinder()
        self.thread: int | None = None
        self.threads = Threads(self)
        self.broken = False
        self.complete = False
        self.here = Here()
        self.timed = False
        self.idle = False
        self._rest_until = 0
        self.ended = False
        self.journal = Journal(orders)
        self.schedule = Schedule(orders.options)
        self.may_begin = Trigger(orders)
        self.regions = Regions()
        self.observer = Observer(self)
        self.spans = SpanWriter(self)
        self.memory = MemoryHistory(self.guard)
        self.ending = False
        self._calls_looked_at = 0
        self._sizes: dict[int, int] = {}
        self._begun_ns: int | None = None
        self._begun_cpu_ns = 0
        self.last_signal_ns = 0
        self._last_write_ns = time.perf_counter_ns()
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()

    def guard(self, what: Callable[[], object]) -> None:
        """Do something of ours so that no fault of it can reach the program."""
        if self.broken:
            return
        here = self.here
        outer, here.busy = here.busy, True
        try:
            with apart(self.torch):
                what()
        except Exception as error:
            self.break_down()  # also where a handler of the program's fell into us: what it left half done could crash
            if is_theirs(error):
                raise
        finally:
            here.busy = outer

    @property
    def busy(self) -> bool:
        """Return whether this thread is in work of ours; others may be, too."""
        return self.here.busy

    def is_ours(self) -> bool:
        """Return whether this is the thread whose steps are recorded (any, while none is known)."""
        return not self.broken and self.is_on_thread() and not self.threads.is_shut()

    def take(self, action: Action) -> None:
        """Carry out what a signal means for the running step."""
        now_ns = time.perf_counter_ns()
        self.last_signal_ns = now_ns
        if self.ending:
            self._end_window()
            return
        if self.threads.heir is not None and self.threads.makes_way():
            return
        if self.idle and action is Action.CLOSE and (self.complete or self._rests() or not self.may_begin()):
            self._count(now_ns)
            return
        if self.timed and action is not Action.NOTHING:
            self.timed = False
            self._restart()
        self._look()
        if action is Action.NOTHING:
            return
        if action is Action.RESTART:
            self._restart()
        elif action is Action.PART:
            self._part()
        elif action is Action.CLOSE:
            if self.thread is None:
                self.thread = threading.get_ident()
            self._close(now_ns)
        self._open(valid=action is Action.CLOSE)

    def _rests(self) -> bool:
        """Return whether no window can be due after this step."""
        return self.finder.seen < self._rest_until

    def _part(self) -> None:
        """End a window that may not go on in another training."""
        if self.observer.window is not None and self.schedule.parts(self.observer.window):
            self.observer.marks.strike()
            self.observer.end()

    def _look(self) -> None:
        """Note whether outermost calls of modules still matter."""
        self.regions.looking = self._calls_looked_at < CALLS_LOOKED_AT or self.finder.wants_forwards

    def finish(self) -> None:
        """Close what is open and write everything; called once at the end, harmless if called again."""
        if self.pid != os.getpid():
            return
        self.ended = True
        if self.journal.folder is None and not self.finder.seen:
            self.observer.drop()
            return
        self._ask_other_thread()
        if not self.broken and self.finder.step_is_open and self._begun_ns is not None and self.is_on_thread():
            self.finder.seen += 1
            self._note_step(self._begun_ns, self.last_signal_ns, None)
        elif self.is_on_thread():
            self.observer.marks.strike()  # the program ends inside a step, or after the last one
        self.observer.end()
        if self.schedule.held_since is not None:
            self.journal.note("region-left-open")
        self.spans.flush()
        self.observer.sampler.stop()
        self.write(ended=True)

    def leave_thread(self) -> None:
        """End the window on the thread that began it, which is about to end: a profiler left open there crashes."""
        if not self.is_on_thread():
            return
        if self.thread is None:
            self._restart()  # no step was whole yet: the first one may be any thread's
            return
        self._end_window()
        self.thread = NOBODY

    def _end_window(self) -> None:
        """End the window for good: the program or its thread is about to end."""
        if self.observer.window is not None and self.is_on_thread():
            self.observer.end()
        self.complete = True

    def _ask_other_thread(self) -> None:
        """Wait for a window that is open on another living thread to be ended there, at its next signal."""
        self.ending = True
        until = time.monotonic() + ENDING_S
        while not self.is_on_thread() and self.observer.traces() and time.monotonic() < until:
            time.sleep(0.01)

    def break_down(self) -> None:
        """Stop recording for good after a fault of ours; the program runs on untouched.

        A profiler that another thread began is ended there, at its next signal: left on, it would fill the memory.
        """
        is_others = self.observer.is_bound() and not self.is_on_thread()
        if is_others and self.journal.faults:
            return
        self.broken, self.ending = self.broken or not is_others, self.ending or is_others
        with contextlib.suppress(Exception):
            self.journal.fault()
        if is_others:
            return
        self.observer.give_up()
        self.journal.garbage.end()
        self.observer.works.end()
        self.regions.on = False
        with contextlib.suppress(Exception):
            self.write(ended=False)

    def home(self) -> Path:
        """Return this process's folder."""
        return self.journal.home(self.torch)

    def saw_model(self, module: Any) -> None:
        """Take the outermost module with most parameters for the model: losses and metrics are modules too."""
        self._calls_looked_at += 1
        self._look()
        if id(module) not in self._sizes and not self.torch.jit.is_tracing():  # a count would be part of its graph
            self._sizes[id(module)] = size = settings.parameter_count(module)
            if size >= max(self._sizes.values()):
                self.journal.seen["model"] = weakref.ref(module)

    def after_fork(self) -> None:
        """Begin anew in a forked child: what the parent observes goes on there, not here."""
        if self.observer.is_bound():
            sys.setprofile(None)
        if self.observer.probe.marks:
            self.torch.autograd._enable_record_function(False)  # torch's own call; this thread only
        TraceProbe.let_forked_end()
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything but the program's torch."""
        finder, regions, torch = self.finder, self.regions, self.torch
        self.journal.garbage.end()
        self.observer.works.end()
        finder.__init__()  # type: ignore[misc]  # the hooks hold these two objects
        regions.__init__()  # type: ignore[misc]
        self.__init__(self.orders)  # type: ignore[misc]
        self.finder, self.regions, self.torch = finder, regions, torch
        self.journal.garbage.watch(torch, regions)

    def is_on_thread(self) -> bool:
        """Return whether this is the thread that windows begin and end on, even after a fault."""
        return self.thread is None or threading.get_ident() == self.thread

    def _count(self, now_ns: int) -> None:
        """Count a step while nothing is to be done, and begin the next: what recording costs outside windows."""
        journal, begun_ns = self.journal, self._begun_ns
        begun_cpu_ns, self._begun_cpu_ns = self._begun_cpu_ns, time.thread_time_ns()  # one call of the system a step
        if begun_ns is not None:
            ran_ns = self._begun_cpu_ns - begun_cpu_ns
            journal.steps.append((self.finder.seen, "", begun_ns + self._epoch_ns, now_ns - begun_ns, ran_ns))
            journal.garbage.add_step(now_ns - begun_ns)
        if now_ns - self._last_write_ns > WRITE_EVERY_NS:
            self._write_again(now_ns)
        journal.garbage.is_timed = True
        self._begun_ns = time.perf_counter_ns()

    def _write_again(self, now_ns: int) -> None:
        """Write where the recording stands, some time after the last time; CUDA may have come into use since."""
        self._last_write_ns = now_ns
        self.memory.begin(self.torch, self.home)
        self.write(ended=False, fresh=False)

    def _close(self, now_ns: int) -> None:
        """End the running step, and with it perhaps the window."""
        observer = self.observer
        if self._begun_ns is not None:
            self._note_step(self._begun_ns, now_ns, time.thread_time_ns() - self._begun_cpu_ns)
            self.journal.garbage.add_step(now_ns - self._begun_ns)
            if self.schedule.gathers(self.finder, self.journal.steps):
                self._restart()
        self.journal.garbage.is_timed = False
        self.home()
        self.memory.begin(self.torch, self.home)
        observer.marks.close()
        observer.works.look()
        if self.regions.watch is not None:
            self.regions.watch.cut_if_full()
        if observer.window is not None and self.schedule.is_over(observer.window, self.regions.watch):
            observer.end()
        if observer.window is None and not self.complete:
            self._next_window()
        wanted = self.orders.options.steps
        if wanted is not None and self.finder.seen >= wanted and not self.finder.may_train:
            self._end_program()
        self._rest_until = self.schedule.rests_until(self.finder.seen)
        waits = self.complete or not self.schedule.begun or self._rests()
        self.idle = observer.window is None and waits and not wanted
        if now_ns - self._last_write_ns > WRITE_EVERY_NS:
            self._write_again(now_ns)

    def _open(self, *, valid: bool) -> None:
        """Begin a step; one that was open and is no step after all is struck from the trace."""
        observer = self.observer
        if not valid:
            observer.marks.strike()
            self.journal.move(self.finder.seen + 1)
        if observer.window is None and not self.complete and not self.schedule.begun:
            self._next_window()
        if observer.probe.marks:
            observer.marks.open()
        self.journal.garbage.begin_step(is_timed=observer.window is None or observer.window.stage.name not in FILES)
        self._begun_cpu_ns = time.thread_time_ns()
        self._begun_ns = time.perf_counter_ns()

    def _note_step(self, begun_ns: int, ended_ns: int, cpu_ns: int | None) -> None:
        window = self.observer.window
        name = window.stage.name if window else ""
        self.journal.steps.append((self.finder.seen, name, begun_ns + self._epoch_ns, ended_ns - begun_ns, cpu_ns))
        if window is not None:
            window.step_ns.append(ended_ns - begun_ns)

    def begin_on_thread(self) -> None:
        """Forget what was recorded on another thread, but for windows that count until there is something better."""
        self._restart()
        self.finder.begin_anew(sum(one() is not None for one in self.journal.seen["optimizers"]))
        self.regions.forget()
        self._sizes.clear()
        self._calls_looked_at = 0

    def _restart(self) -> None:
        """Forget the windows: what looked like the loop was not."""
        self.observer.drop()
        self.schedule.forget()
        self.journal.steps.clear()
        self.journal.moved.clear()
        self.journal.garbage.forget()
        if self.complete:
            self._watch_loader_again()
        self.complete = self.idle = False
        self._rest_until = 0
        self._begun_ns = None

    def _watch_loader_again(self) -> None:
        """Note the loader's stages once more: an evaluation was recorded whole, and the training after it is not."""
        self.spans.end()
        self.spans = SpanWriter(self)
        (self.home() / "complete").unlink(missing_ok=True)

    def _next_window(self) -> None:
        """Begin the next window of the plan that can be recorded."""
        if not self.schedule.begun:
            if not self.may_begin():
                return
            self.schedule.begin(self.torch, self.journal.seen)
        held = self.observer.is_held_back()
        while (stage := self.schedule.take_next(self.finder.seen, held=held)) is not None:
            if self.observer.begin(stage):
                return
        if self.schedule.is_done():
            self._complete()

    def _complete(self) -> None:
        """Every window is recorded: from now on the hooks only count."""
        self.complete = True
        self.observer.sampler.stop()
        self.spans.end()
        self.write(ended=False)
        (self.home() / "complete").touch()
        if self.orders.options.then_exit and not self.finder.may_train:
            self._end_program()

    def _end_program(self) -> None:
        """End the program as `sys.exit` would, once: its own clean-up may make further steps."""
        if not self.ending:
            self.observer.end()
            self.ending = True
            raise SystemExit(0)

    def write(self, *, ended: bool, fresh: bool = True) -> None:
        """Write where the recording stands."""
        state = {
            "pid": self.pid,
            "ended": ended,
            "complete": self.complete,
            "step_rule": "time" if self.timed and self.finder.rule == "none" else self.finder.rule,
            "steps_seen": self.finder.seen,
            "windows": [window.to_json() for window in self.schedule.recorded().values()],
            "first_baseline": self.schedule.first_baseline and self.schedule.first_baseline.to_json(),
            "main_thread": self.thread in (None, threading.main_thread().ident),
            "threads": self.threads.to_json(),
        }
        self.journal.write(self.torch, state, fresh=fresh)
        self.observer.sampler.write(self.home() / "stacks.json", "main")
