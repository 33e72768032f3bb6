"""Recorder: the windows of one process, driven by its step boundaries, each on disk as soon as it is over."""

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
from uncork.capture.apart import apart
from uncork.capture.budget import Budget, Watch
from uncork.capture.farewell import Farewell
from uncork.capture.files import write_json
from uncork.capture.journal import Journal
from uncork.capture.memory_history import MemoryHistory
from uncork.capture.options import Orders, Trigger
from uncork.capture.plan import Stage
from uncork.capture.probes import FunctionsProbe, Probe, TraceProbe, Unavailable
from uncork.capture.regions import Regions, StepMarks
from uncork.capture.schedule import Schedule
from uncork.capture.spans import SpanWriter
from uncork.capture.stacks import StackSampler
from uncork.capture.steps import Action, StepFinder
from uncork.capture.windows import FILES, Window

CALLS_LOOKED_AT = 64
"""Calls of outermost modules among which the model is looked for."""
WRITE_EVERY_NS = 2_000_000_000
ENDING_S = 2.0
"""Time that the end of the program waits for another thread to close its window."""


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
        self.broken = False
        self.complete = False
        self.busy = False
        self.timed = False
        self.idle = False
        self.journal = Journal(orders)
        self.schedule = Schedule(orders.options)
        self.may_begin = Trigger(orders)
        self.window: Window | None = None
        self.regions = Regions()
        self.marks = StepMarks()
        self.spans = SpanWriter(self)
        self.sampler = StackSampler()
        self.memory = MemoryHistory(self.guard)
        self.user_profilers = 0
        self._ending = False
        self._local = threading.local()
        self._calls_looked_at = 0
        self._sizes: dict[int, int] = {}
        self._probe = Probe()
        self._begun_ns: int | None = None
        self._last_signal_ns = 0
        self._last_write_ns = time.perf_counter_ns()
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()

    def guard(self, what: Callable[[], object]) -> None:
        """Do something of ours so that no fault of it can reach the program."""
        if self.broken:
            return
        outer, self.busy = self.busy, True
        try:
            with apart(self.torch):
                what()
        except Exception:
            self.break_down()
        finally:
            self.busy = outer

    def is_ours(self) -> bool:
        """Return whether this is the thread whose steps are recorded (any, while none is known)."""
        return not self.broken and (self.thread is None or threading.get_ident() == self.thread)

    def take(self, action: Action) -> None:
        """Carry out what a signal means for the running step."""
        now_ns = time.perf_counter_ns()
        self._last_signal_ns = now_ns
        if self._ending:
            self.leave_thread()
            return
        if self.idle and action is Action.CLOSE and (self.complete or not self.may_begin()):
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
        elif action is Action.PART and self.window is not None and self.schedule.parts(self.window):
            self.marks.strike()
            self._end_window()
        elif action is Action.CLOSE:
            if self.thread is None:
                self.thread = threading.get_ident()
            self._close(now_ns)
        self._open(valid=action is Action.CLOSE)

    def _look(self) -> None:
        """Note whether outermost calls of modules still matter."""
        self.regions.looking = self._calls_looked_at < CALLS_LOOKED_AT or self.finder.wants_forwards

    def finish(self) -> None:
        """Close what is open and write everything; called once at the end, harmless if called again."""
        if self.pid != os.getpid():
            return
        if self.journal.folder is None and not self.finder.seen:
            self._drop_window()
            return
        self._ask_other_thread()
        if not self.broken and self.finder.step_is_open and self._begun_ns is not None and self._on_thread():
            self.finder.seen += 1
            self._note_step(self._begun_ns, self._last_signal_ns)
        self._end_window()
        self.spans.flush()
        self.sampler.stop()
        self._write(ended=True)

    def leave_thread(self) -> None:
        """End the window on the thread that began it, which is about to end: a profiler left open there crashes."""
        if self.window is not None and self._on_thread():
            self._end_window()
        self.complete = True

    def _ask_other_thread(self) -> None:
        """Wait for a window that is open on another living thread to be ended there, at its next signal."""
        self._ending = True
        until = time.monotonic() + ENDING_S
        while not self._on_thread() and self.window is not None and self._probe.marks and time.monotonic() < until:
            time.sleep(0.01)

    def break_down(self) -> None:
        """Stop recording for good after a fault of ours; the program runs on untouched."""
        self.journal.fault()
        self.broken = True
        self.journal.garbage.end()
        with contextlib.suppress(Exception):
            self._probe.discard()
        self.regions.on = False
        with contextlib.suppress(Exception):
            self._write(ended=False)

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
        if self._probe.marks or isinstance(self._probe, FunctionsProbe):
            sys.setprofile(None)
        if self._probe.marks:
            self.torch.autograd._enable_record_function(False)  # torch's own call; this thread only
        TraceProbe.let_forked_end()
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything but the program's torch."""
        finder, regions, torch = self.finder, self.regions, self.torch
        self.journal.garbage.end()
        finder.__init__()  # type: ignore[misc]  # the hooks hold these two objects
        regions.__init__()  # type: ignore[misc]
        self.__init__(self.orders)  # type: ignore[misc]
        self.finder, self.regions, self.torch = finder, regions, torch
        self.journal.garbage.watch(torch, regions)

    def user_profiler_starts(self) -> None:
        """Step aside for a profiler of the program's own: a second one would silence it."""
        self.user_profilers += 1
        self.journal.note("user-profiler")
        if self.window is not None and self._probe.marks:
            self._drop_window()

    def user_profiler_ends(self) -> None:
        """Go on once the program's own profiler is off."""
        self.user_profilers = max(0, self.user_profilers - 1)

    def _on_thread(self) -> bool:
        return self.thread is None or threading.get_ident() == self.thread

    def _count(self, now_ns: int) -> None:
        """Count a step while nothing is to be done, and begin the next: what recording costs outside windows."""
        journal, begun_ns = self.journal, self._begun_ns
        if begun_ns is not None:
            journal.steps.append((self.finder.seen, "", begun_ns + self._epoch_ns, now_ns - begun_ns))
            journal.garbage.add_step(now_ns - begun_ns)
        if now_ns - self._last_write_ns > WRITE_EVERY_NS:
            self._write_again(now_ns)
        journal.garbage.is_timed = True
        self._begun_ns = time.perf_counter_ns()

    def _write_again(self, now_ns: int) -> None:
        """Write where the recording stands, some time after the last time; CUDA may have come into use since."""
        self._last_write_ns = now_ns
        self.memory.begin(self.torch, self.home)
        self._write(ended=False, fresh=False)

    def _close(self, now_ns: int) -> None:
        """End the running step, and with it perhaps the window."""
        if self._begun_ns is not None:
            self._note_step(self._begun_ns, now_ns)
            self.journal.garbage.add_step(now_ns - self._begun_ns)
            if self.schedule.gathers(self.finder, self.journal.steps):
                self._restart()
        self.journal.garbage.is_timed = False
        self.home()
        self.memory.begin(self.torch, self.home)
        self.marks.close()
        if self.regions.watch is not None:
            self.regions.watch.cut_if_full()
        if self.window is not None and self.schedule.is_over(self.window, self.regions.watch):
            self._end_window()
        if self.window is None and not self.complete:
            self._next_window()
        if self.orders.options.steps is not None and self.finder.seen >= self.orders.options.steps:
            self._end_program()
        self.idle = self.window is None and (self.complete or not self.schedule.begun) and not self.orders.options.steps
        if now_ns - self._last_write_ns > WRITE_EVERY_NS:
            self._write_again(now_ns)

    def _open(self, *, valid: bool) -> None:
        """Begin a step; one that was open and is no step after all is struck from the trace."""
        if not valid:
            self.marks.strike()
        if self.window is None and not self.complete and not self.schedule.begun:
            self._next_window()
        if self._probe.marks:
            self.marks.open()
        self.journal.garbage.begin_step(is_timed=self.window is None or self.window.stage.name not in FILES)
        self._begun_ns = time.perf_counter_ns()

    def _note_step(self, begun_ns: int, ended_ns: int) -> None:
        name = self.window.stage.name if self.window else ""
        self.journal.steps.append((self.finder.seen, name, begun_ns + self._epoch_ns, ended_ns - begun_ns))
        if self.window is not None:
            self.window.step_ns.append(ended_ns - begun_ns)

    def _restart(self) -> None:
        """Forget the windows: what looked like the loop was not."""
        self._drop_window()
        self.schedule.forget()
        self.journal.steps.clear()
        self.complete = self.idle = False
        self._begun_ns = None

    def _next_window(self) -> None:
        """Begin the next window of the plan that can be recorded."""
        if not self.schedule.begun:
            if not self.may_begin():
                return
            self.schedule.begin(self.torch, self.journal.seen)
        while (stage := self.schedule.take_next(self.finder.seen)) is not None:
            if self._begin(stage):
                return
        if self.schedule.is_done():
            self._complete()

    def _begin(self, stage: Stage) -> bool:
        """Return whether the window could begin; otherwise the notes say why not."""
        if self.user_profilers and stage.name in FILES:
            return False
        if too_large := self.schedule.refuses(stage.name):
            self.journal.note(too_large)
            return False
        if self.schedule.drops_stacks(stage.name):
            self.journal.note("stacks-too-many")
        probe = self.schedule.probe(stage.name, self.torch, self.regions)
        try:
            probe.start()
        except Unavailable as reason:
            self.journal.note(reason.note)
            return False
        self._probe = probe
        if threading.current_thread() is not threading.main_thread() and not hasattr(self._local, "farewell"):
            self._local.farewell = Farewell(self)
        if stage.name == "baseline" and "loader_now" in self.journal.seen:
            self.journal.seen["loader"] = self.journal.seen["loader_now"]
        self.window = Window(stage, self.finder.seen, time.time_ns())
        if stage.name in FILES and not self.timed:
            longest_ns = max((row[3] for row in self.journal.steps), default=0)
            self.regions.watch = Watch(Budget(self.torch, self.schedule.room(stage.name), longest_ns), self)
        self.sampler.run(stage.name in ("warmup", "settle", "deep"), moments=stage.name == "deep")
        return True

    def _end_window(self) -> None:
        """Stop the probe and write what it saw; a window that saw no whole step leaves nothing."""
        window, self.window = self.window, None
        if window is None:
            return
        probe, self._probe = self._probe, Probe()
        self.marks.close()
        begun_ns = time.perf_counter_ns()
        name = window.stage.name
        older = self.schedule.windows.get(name)
        self.regions.unwatch()
        is_cut = "cut" in window.facts
        fewer = older is not None and len(window.step_ns) < len(older.step_ns)
        too_short = fewer or (not window.step_ns and not is_cut)
        if too_short or not self._on_thread():
            if self._on_thread():
                probe.discard()
            self._write(ended=False)
            return
        try:
            window.facts.update(probe.stop(self.home() / FILES.get(name, name)))
        except BaseException:  # a Ctrl-C that falls here must not leave a profiler on
            probe.discard()
            raise
        window.facts["stop_ns"] = time.perf_counter_ns() - begun_ns
        if self.marks.struck:
            window.facts["struck"] = len(self.marks.struck)
            write_json(self.home() / f"{name}.struck.json", self.marks.struck)
            self.marks.struck = []
        if name == "settle":
            return
        if name == "light" and self.finder.burst > 1:
            self.journal.note("steps-gathered")
        self.journal.remove(self.torch, self.schedule.keep(window))
        if name in FILES:
            self._write(ended=False, fresh=False)

    def cut_window(self) -> None:
        """End a window inside a step that is too large for it; whole steps are kept, else what there is of one."""
        window, watch = self.window, self.regions.watch
        if window is None or watch is None or not self._on_thread():
            return
        self.marks.strike()
        lasted_ns = watch.budget.lasted_ns()
        if not window.step_ns:
            window.facts["cut"] = 1
        self._end_window()
        if not self.schedule.repeats(window, lasted_ns):
            self.journal.note("window-cut")

    def _drop_window(self) -> None:
        self.window = None
        probe, self._probe = self._probe, Probe()
        self.marks.close()
        if self._on_thread():
            probe.discard()

    def _complete(self) -> None:
        """Every window is recorded: from now on the hooks only count."""
        self.complete = True
        self.sampler.stop()
        self.spans.end()
        self._write(ended=False)
        (self.home() / "complete").touch()
        if self.orders.options.then_exit:
            self._end_program()

    def _end_program(self) -> None:
        """End the program as `sys.exit` would, once: its own clean-up may make further steps."""
        if not self._ending:
            self._end_window()
            self._ending = True
            raise SystemExit(0)

    def _write(self, *, ended: bool, fresh: bool = True) -> None:
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
        }
        self.journal.write(self.torch, state, fresh=fresh)
        self.sampler.write(self.home() / "stacks.json", "main")
