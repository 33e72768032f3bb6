"""Recorder: the windows of one process, driven by its step boundaries, each on disk as soon as it is over."""

import contextlib
import os
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uncork.capture import plan, settings
from uncork.capture.files import claim, write_json
from uncork.capture.options import GO, Orders
from uncork.capture.plan import Stage
from uncork.capture.probes import FunctionsProbe, Probe, TraceProbe, Unavailable
from uncork.capture.regions import Regions, StepMarks
from uncork.capture.spans import SpanWriter
from uncork.capture.stacks import StackSampler
from uncork.capture.steps import Action, StepFinder
from uncork.capture.windows import FILES, Window

CALLS_LOOKED_AT = 64
STEPS_KEPT = 4096
"""Steps whose times are kept for steps.json: the first windows lie well inside."""
WRITE_EVERY_NS = 2_000_000_000
ENDING_S = 2.0
"""Time that the end of the program waits for another thread to close its window."""


class Farewell:
    """Lives in a thread's own storage, so that it goes when the thread ends, still on that thread.

    Args:
        recorder: Whose window is open on the thread.
    """

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = weakref.ref(recorder)
        self._thread = threading.get_ident()

    def __del__(self) -> None:
        """End the window while torch's own state of the thread is still there."""
        recorder = self._recorder()
        if recorder is not None and threading.get_ident() == self._thread:
            recorder.guard(recorder.leave_thread)


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
        self.folder: Path | None = None
        self.broken = False
        self.complete = False
        self.busy = False
        self.timed = False
        self.windows: dict[str, Window] = {}
        self.window: Window | None = None
        self.notes: list[str] = []
        self.faults: list[str] = []
        self.seen: dict[str, Any] = {"optimizers": []}
        self.regions = Regions()
        self.marks = StepMarks()
        self.spans = SpanWriter(self)
        self.sampler = StackSampler()
        self.steps: deque[tuple[int, str, int, int]] = deque(maxlen=STEPS_KEPT)
        self.user_profilers = 0
        self._ending = False
        self._local = threading.local()
        self._calls_looked_at = 0
        self._sizes: dict[int, int] = {}
        self._facts: dict[str, Any] = {}
        self._probe = Probe()
        self._ahead: list[Stage] | None = None
        self._begun_ns: int | None = None
        self._loop_ns = time.perf_counter_ns()
        self._last_signal_ns = 0
        self._last_write_ns = 0
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()

    def guard(self, what: Callable[[], object]) -> None:
        """Do something of ours so that no fault of it can reach the program."""
        if self.broken:
            return
        outer, self.busy = self.busy, True
        try:
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
        if self.timed and action is not Action.NOTHING:
            self.timed = False
            self._restart()
        if action is Action.NOTHING:
            return
        if action is Action.RESTART:
            self._restart()
        elif action is Action.CLOSE:
            if self.thread is None:
                self.thread = threading.get_ident()
            self._close(now_ns)
        self._open(valid=action is Action.CLOSE)

    def finish(self) -> None:
        """Close what is open and write everything; called once at the end, harmless if called again."""
        if self.pid != os.getpid():
            return
        if self.folder is None:
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
        self.faults.append(traceback.format_exc(limit=8))
        self.note("recorder-fault")
        self.broken = True
        with contextlib.suppress(Exception):
            self._probe.discard()
        self.regions.on = False
        with contextlib.suppress(Exception):
            self._write(ended=False)

    def note(self, what: str) -> None:
        """Remember the id of something that went wrong or was left out."""
        if what not in self.notes:
            self.notes.append(what)

    def home(self) -> Path:
        """Return this process's folder, claiming it when it is first needed."""
        if self.folder is None:
            self.folder = claim(Path(self.orders.folder), settings.rank(self.torch)[0])
        return self.folder

    @property
    def model_wanted(self) -> bool:
        """Return whether the model is still being looked for among the outermost modules called."""
        return self._calls_looked_at < CALLS_LOOKED_AT

    def saw_model(self, module: Any) -> None:
        """Take the outermost module with most parameters for the model: losses and metrics are modules too."""
        self._calls_looked_at += 1
        if id(module) not in self._sizes:
            self._sizes[id(module)] = size = settings.parameter_count(module)
            if size >= max(self._sizes.values()):
                self.seen["model"] = weakref.ref(module)

    def after_fork(self) -> None:
        """Begin anew in a forked child: what the parent observes goes on there, not here."""
        if self._probe.marks or isinstance(self._probe, FunctionsProbe):
            sys.setprofile(None)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything but the program's torch."""
        finder, regions, torch = self.finder, self.regions, self.torch
        finder.__init__()  # type: ignore[misc]  # the hooks hold these two objects
        regions.__init__()  # type: ignore[misc]
        self.__init__(self.orders)  # type: ignore[misc]
        self.finder, self.regions, self.torch = finder, regions, torch

    def user_profiler_starts(self) -> None:
        """Step aside for a profiler of the program's own: a second one would silence it."""
        self.user_profilers += 1
        self.note("user-profiler")
        if self.window is not None and self._probe.marks:
            self._drop_window()

    def user_profiler_ends(self) -> None:
        """Go on once the program's own profiler is off."""
        self.user_profilers = max(0, self.user_profilers - 1)

    def _on_thread(self) -> bool:
        return self.thread is None or threading.get_ident() == self.thread

    def _close(self, now_ns: int) -> None:
        """End the running step, and with it perhaps the window."""
        if self._begun_ns is not None:
            self._note_step(self._begun_ns, now_ns)
        self.marks.close()
        if self.window is not None and self.window.is_over():
            self._end_window()
        if self.window is None and not self.complete:
            self._next_window()
        if self.orders.options.steps is not None and self.finder.seen >= self.orders.options.steps:
            raise SystemExit(0)
        if now_ns - self._last_write_ns > WRITE_EVERY_NS:
            self._last_write_ns = now_ns
            self._write(ended=False, fresh=False)

    def _open(self, *, valid: bool) -> None:
        """Begin a step; one that was open and is no step after all is struck from the trace."""
        if not valid:
            self.marks.strike()
        if self.window is None and not self.complete and self._ahead is None:
            self._next_window()
        if self._probe.marks:
            self.marks.open()
        self._begun_ns = time.perf_counter_ns()

    def _note_step(self, begun_ns: int, ended_ns: int) -> None:
        name = self.window.stage.name if self.window else ""
        self.steps.append((self.finder.seen, name, begun_ns + self._epoch_ns, ended_ns - begun_ns))
        if self.window is not None:
            self.window.step_ns.append(ended_ns - begun_ns)

    def _restart(self) -> None:
        """Forget the windows: what looked like the loop was not."""
        if self.window is not None:
            self._drop_window()
        self.windows.clear()
        self.steps.clear()
        self._loop_ns = time.perf_counter_ns()
        self._ahead = None
        self.complete = False
        self._begun_ns = None

    def _next_window(self) -> None:
        """Begin the next window of the plan that can be recorded."""
        if self._ahead is None:
            if not self.may_begin():
                return
            depth, world = settings.loader_depth(self.seen), settings.rank(self.torch)[1]
            self._ahead = plan.stages(self.orders.options, loader_depth=depth, aligned=world > 1)
        while self._ahead:
            stage = self._ahead[0]
            if stage.number > 1 and not self._second_pass_is_due():
                return
            del self._ahead[0]
            if self._begin(plan.fit(stage, self._events_per_step(stage.name))):
                return
        self._complete()

    def _second_pass_is_due(self) -> bool:
        """Return whether the program ran long enough to bear the second pass; ranks decide by steps, to stay aligned."""
        if any(window.stage.number > 1 for window in self.windows.values()):
            return True
        if settings.rank(self.torch)[1] > 1:
            return self.finder.seen >= plan.SECOND_PASS_STEP
        cost_ns = sum(
            self._per_step(stage.name, "stop_ns") * stage.most for stage in self._ahead or () if stage.name in FILES
        )
        loop_ns = time.perf_counter_ns() - self._loop_ns
        return self.finder.seen >= plan.SECOND_PASS_LEAST and cost_ns <= plan.SECOND_PASS_SHARE * loop_ns

    def _per_step(self, window: str, fact: str) -> float:
        """Return a figure of a finished window per step, 0 where it is not known."""
        found = self.windows.get(window)
        return found.facts.get(fact, 0) / len(found.step_ns) if found and found.step_ns else 0.0

    def _events_per_step(self, name: str) -> float:
        """Return how many events a step of a window will hold: operators, and calls where stacks are recorded."""
        calls = self._per_step("functions", "calls") if name == "deep" and self._stacks_fit() else 0.0
        return self._per_step("light", "events") + calls

    def _stacks_fit(self) -> bool:
        """Return whether a step makes few enough Python calls for a deep window to record each of them."""
        return self.orders.options.stacks and self._per_step("functions", "calls") <= plan.EVENTS_MOST_DEEP

    def _begin(self, stage: Stage) -> bool:
        """Return whether the window could begin; otherwise the notes say why not."""
        if self.user_profilers and stage.name in FILES:
            return False
        if stage.name == "deep" and self._per_step("light", "events") > plan.EVENTS_MOST_DEEP * 2:
            self.note("deep-too-large")
            return False
        if stage.name == "deep" and self.orders.options.stacks and not self._stacks_fit():
            self.note("stacks-too-many")
        probe = self._probe_for(stage.name)
        try:
            probe.start()
        except Unavailable as reason:
            self.note(reason.note)
            return False
        self._probe = probe
        if threading.current_thread() is not threading.main_thread() and not hasattr(self._local, "farewell"):
            self._local.farewell = Farewell(self)
        if stage.name == "baseline" and "loader_now" in self.seen:
            self.seen["loader"] = self.seen["loader_now"]
        self.window = Window(stage, self.finder.seen, time.time_ns())
        self.sampler.run(stage.name in ("warmup", "settle"))
        return True

    def _probe_for(self, name: str) -> Probe:
        options = self.orders.options
        if name == "light":
            return TraceProbe(self.torch, self.regions.switch)
        if name == "deep":
            return TraceProbe(
                self.torch, self.regions.switch, stacks=self._stacks_fit(), shapes=options.shapes, memory=options.memory
            )
        return FunctionsProbe() if name == "functions" else Probe()

    def _end_window(self) -> None:
        """Stop the probe and write what it saw; a window that saw no whole step leaves nothing."""
        window, self.window = self.window, None
        if window is None:
            return
        probe, self._probe = self._probe, Probe()
        self.marks.close()
        begun_ns = time.perf_counter_ns()
        name = window.stage.name
        older = self.windows.get(name)
        too_short = not window.step_ns or (older is not None and len(window.step_ns) < len(older.step_ns))
        if too_short or not self._on_thread():
            if self._on_thread():
                probe.discard()
            self._write(ended=False)
            return
        try:
            window.facts.update(probe.stop(self.home() / FILES.get(name, name)))
        except Exception:
            probe.discard()
            raise
        window.facts["stop_ns"] = time.perf_counter_ns() - begun_ns
        if self.marks.struck:
            window.facts["struck"] = len(self.marks.struck)
            write_json(self.home() / f"{name}.struck.json", self.marks.struck)
            self.marks.struck = []
        if name != "settle":
            self.windows[name] = window
        self._write(ended=False)

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
            raise SystemExit(0)

    def may_begin(self) -> bool:
        """Return whether the first window may begin: at once, or once an armed recording was triggered."""
        return not self.orders.options.arm or (Path(self.orders.folder) / GO).exists()

    def begin_timed(self, name: str) -> bool:
        """Return whether a window of fixed time could begin here."""
        self.timed = True
        return self._begin(Stage(name, 1, 1, 0))

    def end_timed(self, least: int) -> int | None:
        """End the window; return its events, or None (and nothing is kept) where it saw fewer than `least`."""
        window, self.window = self.window, None
        probe, self._probe = self._probe, Probe()
        if window is None:
            return None
        name = window.stage.name
        window.facts["length_ns"] = time.time_ns() - window.start_ns
        look = Path(self.orders.folder) / f"look.{self.pid}"
        try:
            window.facts.update(probe.stop(look))
        except Exception:
            probe.discard()
            raise
        events = window.facts.get("events", 0)
        if events < least:
            look.unlink()
            return None
        look.replace(self.home() / FILES[name])
        self.windows[name] = window
        self._write(ended=False)
        return events

    def timed_done(self) -> None:
        """All windows by the clock are recorded; a step that shows up later begins anew."""
        self._write(ended=False)

    def _write(self, *, ended: bool, fresh: bool = True) -> None:
        """Write recording.json and steps.json of this rank."""
        home = self.home()
        number, world = settings.rank(self.torch)
        if not self._facts or fresh:
            found = settings.facts(self.torch, self.seen, sys.modules)
            found["settings"] = {**self._facts.get("settings", {}), **found["settings"]}  # the objects may be gone now
            self._facts = found
        write_json(
            home / "recording.json",
            {
                "format": 1,
                "pid": self.pid,
                "rank": number,
                "world_size": world,
                "ended": ended,
                "complete": self.complete,
                "step_rule": "time" if self.timed and self.finder.rule == "none" else self.finder.rule,
                "steps_seen": self.finder.seen,
                "windows": [window.to_json() for window in self.windows.values()],
                "user_profiler": "user-profiler" in self.notes,
                "notes": self.notes,
                "faults": self.faults,
                "main_thread": self.thread in (None, threading.main_thread().ident),
                **self._facts,
            },
        )
        write_json(home / "steps.json", {"columns": ["step", "window", "start_ns", "dur_ns"], "rows": list(self.steps)})
        self.sampler.write(home / "stacks.json", "main")
