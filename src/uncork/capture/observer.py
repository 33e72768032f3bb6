"""Observer: the window that is open, from its begin to the file it leaves."""

import contextlib
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.capture.budget import Budget, Watch
from uncork.capture.core_time import COUNTED, CoreTime
from uncork.capture.farewell import Farewell
from uncork.capture.files import write_json
from uncork.capture.open_works import OpenWorks
from uncork.capture.plan import TRACES, Stage
from uncork.capture.probes import FunctionsProbe, Probe, TraceProbe, Unavailable
from uncork.capture.regions import StepMarks
from uncork.capture.stacks import StackSampler
from uncork.capture.windows import FILES, Window

if TYPE_CHECKING:
    from uncork.capture.recorder import Recorder


class Observer:
    """Begins and ends the windows of one process, one at a time.

    Args:
        recorder: Whose windows these are.
    """

    def __init__(self, recorder: "Recorder") -> None:
        self.window: Window | None = None
        self.probe = Probe()
        self.marks = StepMarks()
        self.sampler = StackSampler()
        self.works = OpenWorks()
        self.user_profilers = 0
        self._recorder = recorder
        self._local = threading.local()

    def traces(self) -> bool:
        """Return whether a trace is being recorded."""
        return self.window is not None and self.probe.marks

    def is_bound(self) -> bool:
        """Return whether a profiler is on, which only the thread that began it can end."""
        return self.probe.marks or isinstance(self.probe, FunctionsProbe)

    def is_held_back(self) -> bool:
        """Return whether no trace may begin here, since a region of an earlier one is open still."""
        return bool(self._recorder.regions.inside) or TraceProbe.left_open.holds_back()

    def begin(self, stage: Stage) -> bool:
        """Return whether the window could begin; otherwise the notes say why not."""
        recorder, schedule, journal = self._recorder, self._recorder.schedule, self._recorder.journal
        if self.user_profilers and stage.name in FILES:
            return False
        if note := schedule.refuses(stage.name) or self._look_at_works(stage.name):
            journal.note(note)
            return False
        for note in schedule.lacking(stage):
            journal.note(note)
        self._discard()  # of a window whose begin something that was raised there has interrupted
        probe = schedule.probe(stage, recorder.torch, recorder.regions)
        try:
            probe.start()
        except Unavailable as reason:
            journal.note(reason.note)
            return False
        except BaseException:  # a handler of the program's may raise anywhere
            probe.discard()
            raise
        self.probe = probe
        if probe.goes_without:
            journal.note(probe.goes_without)
        if threading.current_thread() is not threading.main_thread() and not hasattr(self._local, "farewell"):
            self._local.farewell = Farewell(recorder)
        if stage.name == "baseline" and "loader_now" in journal.seen:
            journal.seen["loader"] = journal.seen["loader_now"]
        self.window = Window(stage, recorder.finder.seen, time.time_ns())
        if stage.name in FILES and not recorder.timed:
            longest_ns = max((row[3] for row in journal.steps), default=0)
            budget = Budget(recorder.torch, schedule.room(stage.name), longest_ns)
            recorder.regions.watch = Watch(budget, recorder, self.cut)
        self.sampler.run(stage.name in ("warmup", "settle", "deep"), moments=stage.name == "deep")
        self.window.cores = CoreTime() if stage.name in COUNTED else None
        return True

    def _look_at_works(self, name: str) -> str:
        """Return the id of why a trace may not begin; until the first one the works of gloo are watched."""
        if name in ("warmup", "baseline"):
            self.works.begin(self._recorder.torch)
        elif name in TRACES:
            self.works.end()
        return "works-left-open" if self.works.seen and name in TRACES else ""

    def end(self) -> None:
        """Stop the probe and write what it saw; a window that saw no whole step leaves nothing."""
        try:
            window = self._take()
            if window is not None:
                self._keep(window)
        finally:  # a Ctrl-C that falls anywhere here must not leave a profiler on
            self._discard()

    def _keep(self, window: Window) -> None:
        recorder, begun_ns = self._recorder, time.perf_counter_ns()
        name = window.stage.name
        older = recorder.schedule.windows.get(name)
        fewer = older is not None and len(window.step_ns) < len(older.step_ns)
        too_short = fewer or (not window.step_ns and "cut" not in window.facts)
        if too_short or not recorder.is_on_thread():
            self._discard()
            recorder.write(ended=False)
            return
        self._stop(window, recorder.home() / FILES.get(name, name))
        window.facts["stop_ns"] = time.perf_counter_ns() - begun_ns
        if self.marks.struck:
            window.facts["struck"] = len(self.marks.struck)
            write_json(recorder.home() / f"{name}.struck.json", self.marks.struck)
            self.marks.struck = []
        if name == "settle":
            return
        if name == "light" and recorder.finder.burst > 1:
            recorder.journal.note("steps-gathered")
        recorder.journal.remove(recorder.torch, recorder.schedule.keep(window))
        if name in FILES:
            recorder.write(ended=False, fresh=False)

    def end_timed(self, look: Path) -> Window | None:
        """Return the window of fixed time that ends here, what it saw written to `look`; None where none was open."""
        try:
            window = self._take()
            self.sampler.run(False)
            if window is not None:
                window.facts["length_ns"] = time.time_ns() - window.start_ns
                self._stop(window, look)
        finally:
            self._discard()
        return window

    def cut(self) -> None:
        """End a window inside a step that is too large for it; whole steps are kept, else what there is of one."""
        window, watch = self.window, self._recorder.regions.watch
        if window is None or watch is None or not self._recorder.is_on_thread():
            return
        self.marks.strike()
        inside, lasted_ns = bool(self.marks.struck), watch.budget.lasted_ns()
        if not window.step_ns:
            window.facts["cut"] = 1
        self.end()
        if self._recorder.schedule.lacks(window, lasted_ns, inside=inside):
            self._recorder.journal.note("window-cut")

    def drop(self) -> None:
        """End the window and write nothing."""
        self._take()
        self._discard()

    def give_up(self) -> None:
        """Leave no profiler on and no mark open, whatever does not work any more; the window is gone."""
        for close in (self.marks.close, self._recorder.journal.garbage.close, self._recorder.regions.unwatch):
            with contextlib.suppress(Exception):
                close()
        with contextlib.suppress(Exception):
            self._discard()

    def user_profiler_starts(self) -> None:
        """Step aside for a profiler of the program's own: a second one would silence it."""
        self.user_profilers += 1
        self._recorder.journal.note("user-profiler")
        if self.traces():
            self.drop()

    def user_profiler_ends(self) -> None:
        """Go on once the program's own profiler is off."""
        self.user_profilers = max(0, self.user_profilers - 1)

    def _take(self) -> Window | None:
        """Return the window, which is open no more; its probe is on still, and kept until it is off.

        A profiler that nobody knows of any more is never ended, and torch crashes with it when the process exits.
        """
        self.marks.close()
        self._recorder.journal.garbage.close()
        self._recorder.regions.unwatch()
        window, self.window = self.window, None
        return window

    def _discard(self) -> None:
        """End the probe, if it is on still, and write nothing; one of another thread's is left to it."""
        self.window = None
        if self._recorder.is_on_thread():
            self.probe.discard()
        self.probe = Probe()

    def _stop(self, window: Window, path: Path) -> None:
        """End the probe, write what it saw, and note the figures in its window."""
        if window.cores is not None:
            window.facts.update(window.cores.facts())
        window.facts.update(self.probe.stop(path))
