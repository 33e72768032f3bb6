"""Schedule: which window comes next and how it observes, from what the windows before it found."""

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from uncork.capture import plan, settings
from uncork.capture.budget import FASTEST_PER_NS, Room, Watch
from uncork.capture.bursts import LOOKED_AT_EVERY, Bursts, is_due
from uncork.capture.options import CaptureOptions
from uncork.capture.plan import Stage
from uncork.capture.probes import BaselineProbe, FunctionsProbe, Probe, TraceProbe
from uncork.capture.regions import Regions
from uncork.capture.steps import PACED, StepFinder
from uncork.capture.windows import FILES, Step, Window

STEPS_TO_COMPARE = 2
HELD_MOST_STEPS = 100
"""Steps that ``--then exit`` waits for a region to close, before the traces behind it are left out."""
FEW, CAREFUL = 4, 2
"""A window cut with less than a quarter of its events was cut for nothing; its rate of events counts double then."""


class Schedule:
    """The plan of one process, and what is known of the cost of its windows.

    Args:
        options: What was asked for.

    `held_since` is the step since which a trace waits for a region of an earlier one to close, or None.
    """

    def __init__(self, options: CaptureOptions) -> None:
        self.windows: dict[str, Window] = {}
        self.former: dict[str, Window] = {}
        self.first_baseline: Window | None = None
        self._rates: dict[str, float] = {}
        self._options = options
        self._ahead: list[Stage] = []
        self._world = 1
        self._bursts = Bursts()
        self._loop_ns = time.perf_counter_ns()
        self.begun = False
        self.forwards = False
        self.held_since: int | None = None

    def begin(self, torch: Any, seen: dict[str, Any]) -> None:
        """Make the plan: loader and ranks are known once the first step begins."""
        self.begun = True
        self._world = settings.rank(torch)[1]
        depth = settings.loader_depth(seen)
        self._ahead = plan.stages(self._options, loader_depth=depth, aligned=self._world > 1)

    def forget(self) -> None:
        """Begin from nothing: what looked like the loop was not; it counts until there is something better."""
        self.former = self.windows if "light" in self.windows else self.former
        self.windows = {}
        self._rates.clear()
        self._ahead, self.begun, self.held_since = [], False, None
        self._loop_ns = time.perf_counter_ns()

    def gathers(self, finder: StepFinder, steps: Sequence[Step]) -> bool:
        """Return whether updates turn out to come in bursts: from now on each burst is one step, if a trace bears it.

        Forwards that are the steps are noted here too. Ranks would not find it at the same update; their windows have
        to begin at the same step.

        Args:
            finder: What finds the steps.
            steps: The latest.
        """
        self.forwards = finder.rule == "inference"
        rate = self._per_step("light", "events")
        paced = finder.burst == 1 and finder.rule in PACED and self._world == 1 and is_due(finder.seen)
        if not (paced and rate and not self.is_done()):
            return False
        # Half of what a trace bears is for the work between the bursts, which no window has seen.
        burst, over = self._bursts.look(steps, int(plan.EVENTS_MOST_STEP / (2 * rate)))
        if burst:
            finder.gather(burst, over)
        return burst > 0

    def keep(self, window: Window) -> list[str]:
        """Take in a window that is over; return the files of windows that it makes worthless."""
        name = window.stage.name
        self.windows[name] = window
        if name == "baseline" and window.stage.number == 1:
            self.first_baseline = window  # later ones come after profilers' blocks, which change what malloc keeps
        if name != "light":
            return []
        worthless, self.former = [FILES[one] for one in self.former if one in FILES and one not in self.windows], {}
        return worthless

    def recorded(self) -> dict[str, Window]:
        """Return the windows that count."""
        return self.former or self.windows

    def is_done(self) -> bool:
        """Return whether no window is ahead."""
        return self.begun and not self._ahead

    def take_next(self, steps_seen: int, *, held: bool = False) -> Stage | None:
        """Return the next window, or None while it is not due.

        Args:
            steps_seen: Steps the program has made.
            held: No trace may begin here; the other windows of its pass come first then.
        """
        if self._ahead and self._ahead[0].number > plan.LAST_FOR_ALL and not self._steps_are_quick():
            self._ahead = []
        if not self._ahead or (self._ahead[0].number > 1 and not self._bears_pass(steps_seen)):
            return None
        stage = self._ahead[0]
        if stage.name in plan.TRACES:
            self.held_since = (self.held_since or steps_seen) if held else None
        if self.held_since is not None:
            others = [one for one in self._ahead if one.number == stage.number and one.name not in plan.TRACES]
            if not others:
                self._give_up_traces(steps_seen)
                return None
            stage = others[0]
        self._ahead.remove(stage)
        if self.forwards and stage.name == "deep" and stage.number > 1:
            stage = replace(stage, most=plan.FORWARDS_MOST_DEEP)
        return plan.fit(stage, self._events_per_step(stage.name))

    def rests_until(self, steps_seen: int) -> int:
        """Return the step up to which nothing can be due, 0 where the next one may be.

        To ask for a later pass takes 40 µs, more than a step of few operators bears each time; ranks ask at one step.
        """
        waits = self._world == 1 and self.held_since is None and bool(self._ahead) and self._ahead[0].number > 1
        is_quick = self._step_ns("baseline") <= plan.QUICK_STEP_NS
        return (steps_seen // LOOKED_AT_EVERY + 1) * LOOKED_AT_EVERY if waits and is_quick else 0

    def _give_up_traces(self, steps_seen: int) -> None:
        """Wait no longer for a region to close, where the program is to end once all is recorded."""
        if self._options.then_exit and steps_seen - (self.held_since or 0) >= HELD_MOST_STEPS:
            self._ahead = []

    def is_over(self, window: Window, watch: Watch | None) -> bool:
        """Return whether a window has seen enough; a first light one also by its events, unless ranks count steps."""
        stage = window.stage
        is_first = stage.name == "light" and stage.number == 1 and stage.target_ns > 0
        enough = plan.EVENTS_ENOUGH if len(window.step_ns) >= STEPS_TO_COMPARE else plan.EVENTS_ENOUGH_ONE
        has_enough = is_first and watch is not None and watch.budget.guess() >= enough
        return window.is_over() or has_enough

    def refuses(self, name: str) -> str:
        """Return the id of why a window would be too large, or nothing."""
        light = self.windows.get("light")
        is_cut = light is not None and "cut" in light.facts
        too_large = name == "deep" and (is_cut or self._per_step("light", "events") > plan.EVENTS_MOST_STEP)
        return "deep-too-large" if too_large else ""

    def room(self, name: str) -> Room:
        """Return what a window may hold; half of it while its rate of events is not known.

        One call of backward cannot be cut, and makes up to three times the events of the forward that led to it.
        """
        if name == "light":
            room = Room(plan.EVENTS_MOST_LIGHT, plan.COLLECTED_LIGHT)
            rate = self._rates.get(name)
            return room.at_rate(rate) if rate else Room(plan.EVENTS_MOST_LIGHT // 2, plan.COLLECTED_LIGHT)
        if name == "deep":
            step_ns = self._step_ns("light")
            rate = self._rates.get(name) or (self._events_per_step(name) / step_ns if step_ns else FASTEST_PER_NS)
            return Room(plan.EVENTS_MOST_STEP, plan.COLLECTED_DEEP).at_rate(rate)
        return Room(sys.maxsize, 0)

    def repeats(self, window: Window, lasted_ns: int) -> bool:
        """Return whether a window that was cut comes once more, since it held far less than it may.

        One whole step shows nothing that repeats, so it does not do; ranks would lose step by another window.
        """
        stage, events, whole = window.stage, window.facts.get("events", 0), len(window.step_ns)
        if whole >= min(stage.most, STEPS_TO_COMPARE) or (whole and self._world > 1):
            return False
        if stage.name in self._rates or events * FEW > self.room(stage.name).events:
            return False
        self._rates[stage.name] = CAREFUL * max(events, 1) / max(lasted_ns, 1)
        most = max(stage.most - 1, 1)
        self._ahead.insert(0, replace(stage, most=most, least=min(stage.least, most)))
        return True

    def lacks(self, window: Window, lasted_ns: int, *, inside: bool) -> bool:
        """Return whether a window that was cut has less than it should; ranks begin the next one at the same step.

        The program's own memory may have made a window look full that was not: its whole steps are all there.

        Args:
            window: The window.
            lasted_ns: How long it was open.
            inside: It was cut inside a step.
        """
        if self.repeats(window, lasted_ns):
            return False
        stage, whole = window.stage, len(window.step_ns)
        rest = stage.most - whole - inside
        if self._world > 1 and rest > 0:
            self._ahead.insert(0, Stage("settle", rest, rest, 0, stage.number))
        return not whole or window.facts.get("events", 0) * FEW > self.room(stage.name).events

    def parts(self, window: Window) -> bool:
        """Return whether a window may not go on in another training; one that saw too little will come once more."""
        stage = window.stage
        if stage.name in ("warmup", "settle"):
            return False
        if len(window.step_ns) < min(stage.most, STEPS_TO_COMPARE):
            self._ahead.insert(0, stage)
        return True

    def lacking(self, stage: Stage) -> list[str]:
        """Return the ids of why a window goes without something that was asked for."""
        if stage.name != "deep":
            return []
        no_stacks = self._options.stacks and not self._stacks_fit()
        return ["stacks-too-many"] * no_stacks + ["shapes-put-off"] * self._puts_off_shapes(stage)

    def probe(self, stage: Stage, torch: Any, regions: Regions) -> Probe:
        """Return the way to observe a window."""
        asked, name = self._options, stage.name
        if name == "light":
            return TraceProbe(torch, regions.switch)
        if name == "deep":
            stacks, shapes = self._stacks_fit(), asked.shapes and not self._puts_off_shapes(stage)
            return TraceProbe(torch, regions.switch, stacks=stacks, shapes=shapes, memory=asked.memory)
        if name in ("baseline", "baseline2"):
            return BaselineProbe()
        return FunctionsProbe() if name == "functions" else Probe()

    def _steps_are_quick(self) -> bool:
        """Return whether steps cost so little that windows may hold more of them, for surer medians."""
        step_ns = self._step_ns("light")
        return 0 < step_ns <= plan.QUICK_STEP_NS and self._events_per_step("deep") <= plan.QUICK_STEP_EVENTS

    def _bears_pass(self, steps_seen: int) -> bool:
        """Return whether the program ran long enough to bear the next pass; ranks decide by steps alone."""
        number = self._ahead[0].number
        if any(window.stage.number >= number for window in self.windows.values()):
            return True
        if self._world > 1:
            return steps_seen >= plan.SECOND_PASS_STEP
        ahead = [one for one in self._ahead if one.number == number and one.name in FILES]
        cost_ns = sum(self._per_step(one.name, "stop_ns") * self._steps_of(one) for one in ahead)
        loop_ns = time.perf_counter_ns() - self._loop_ns
        is_cheap = self._options.then_exit or cost_ns <= plan.SECOND_PASS_SHARE * loop_ns
        has_settled = steps_seen >= plan.SECOND_PASS_LEAST or loop_ns >= plan.SECOND_PASS_AFTER_NS
        return has_settled and is_cheap

    def _steps_of(self, stage: Stage) -> int:
        """Return how many steps a window will last: long ones fill its time before their number is full."""
        step_ns = self._step_ns(stage.name)
        in_time = math.ceil(stage.target_ns / step_ns) if step_ns and stage.target_ns else stage.most
        return min(stage.most, max(stage.least, in_time))

    def _step_ns(self, window: str) -> float:
        """Return the mean duration of a finished window's steps, 0 where it is not known."""
        found = self.windows.get(window)
        return sum(found.step_ns) / len(found.step_ns) if found and found.step_ns else 0.0

    def _per_step(self, window: str, fact: str) -> float:
        """Return a figure of a finished window per step, 0 where it is not known."""
        found = self.windows.get(window)
        return found.facts.get(fact, 0) / len(found.step_ns) if found and found.step_ns else 0.0

    def _events_per_step(self, name: str) -> float:
        """Return how many events a step of a window will hold: operators, and calls where stacks are recorded."""
        calls = self._per_step("functions", "calls") if name == "deep" and self._stacks_fit() else 0.0
        return self._per_step("light", "events") + calls

    def _puts_off_shapes(self, stage: Stage) -> bool:
        """Return whether a deep window leaves the shapes that were asked for to a later pass."""
        events, step_ns = self._per_step("light", "events"), self._step_ns("baseline")
        is_tiny = events > max(plan.TINY_EVENTS, plan.TINY_PER_NS * step_ns)
        return stage.number == 1 and self._options.shapes and is_tiny

    def _stacks_fit(self) -> bool:
        """Return whether a step makes few enough Python calls for a deep window to record each of them."""
        both = self._per_step("functions", "calls") + self._per_step("light", "events")
        return self._options.stacks and both <= plan.EVENTS_MOST_STEP
