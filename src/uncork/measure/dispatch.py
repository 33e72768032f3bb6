"""Dispatch: how many operators and launches a step makes, how small they are, and where most come from."""

import re

import numpy as np
import numpy.typing as npt

from uncork.driving import group_medians, on_driving_tracks
from uncork.events import Kind
from uncork.findings import Location
from uncork.host_causes import TINY_OP_NS
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.syncs import READS_BACK
from uncork.measure.whereabouts import Calls, busiest_lines, of_update
from uncork.operators import ALLOCATES, operator_class
from uncork.quantiles import median
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MOST_OPS = 16
_GRAPH_LAUNCH = re.compile("GraphLaunch")


@dataclass(frozen=True)
class OpCount:
    """An operator of the steps.

    Args:
        name: Its name.
        calls: Calls per step.
        self_ns: Its own time per step on the host.
        median_ns: The median of its own time per call.
    """

    name: str
    calls: float
    self_ns: int
    median_ns: int


@dataclass(frozen=True, eq=False)
class Dispatch(Measurement):
    """Operators and launches per step.

    Args:
        ops: Operators, int64 (steps,).
        tiny: Those of them whose name's median own time is that of a call without work, int64 (steps,).
        launches: Kernels, int64 (steps,).
        graph_launches: Launches of whole graphs in all steps.
        kernel_ns: Mean duration of a kernel; 0 without any.
        most: Operators that cost the host most, by their own time.
        callers: The user's lines that call most operators; else the modules; none where neither is known.
    """

    ops: IntArray
    tiny: IntArray
    launches: IntArray
    graph_launches: int
    kernel_ns: int
    most: tuple[OpCount, ...]
    callers: tuple[Calls, ...]

    @classmethod
    def of(cls, rank: Rank) -> "Dispatch":
        """Return the counts of a rank; without host operators there is nothing to count."""
        timeline = rank.timeline
        host, table = timeline.host, timeline.events
        # Threads that drive no step, as a metrics server's, make no operators of it.
        within = timeline.in_steps & on_driving_tracks(timeline) & ~timeline.in_loader
        is_op = host.kind == Kind.CPU_OP
        if not is_op.any():
            raise MissingEvidence("host")
        ops = np.flatnonzero(is_op & within)
        names, back = table.distinct_names(host.row[ops])
        own = host.self_ns[ops]
        mine = ~of_update(rank, rank.calltree)[ops]
        most, median = _most(timeline, names, back, own, mine)
        tiny = median[back] <= TINY_OP_NS
        kernels = np.flatnonzero(timeline.device.kind == int(Kind.KERNEL))
        graphs = timeline.named(_GRAPH_LAUNCH, Kind.RUNTIME) & within
        return cls(
            ops=_per_step(timeline, host.start_ns[ops]),
            tiny=_per_step(timeline, host.start_ns[ops[tiny]]),
            launches=_per_step(timeline, timeline.device.start_ns[kernels]),
            graph_launches=int(graphs.sum()),
            kernel_ns=int(timeline.device.dur_ns[kernels].mean()) if len(kernels) else 0,
            most=most,
            callers=busiest_lines(rank),
        )

    @property
    def location(self) -> Location:
        """Return the line that calls most operators."""
        return self.callers[0].location if self.callers else Location()

    @property
    def turns(self) -> float:
        """Return how often that line calls the same operator in the same module."""
        return self.callers[0].turns if self.callers else 0.0

    @property
    def leader(self) -> OpCount:
        """Return the operator whose calls cost the host most: of the tiny ones that do not wait for the device.

        One without a name where none is called inside the steps.
        """
        named = [
            one
            for one in self.most
            if one.median_ns <= TINY_OP_NS and one.name.startswith("aten::") and not READS_BACK.match(one.name)
        ]
        # Views and allocations come with the others' calls.
        working = [one for one in named if operator_class(one.name) != "view" and not ALLOCATES.match(one.name)]
        # By what a call usually costs: one that stood still makes no leader.
        usual = working or named or self.most
        return max(usual, key=lambda one: one.calls * one.median_ns, default=OpCount("", 0.0, 0, 0))

    @property
    def steady(self) -> bool:
        """Return whether steps make nearly the same number of operators: within 2 % of their median, two at least."""
        if len(self.ops) < 2:
            return False
        middle = median(self.ops)
        return bool(np.abs(self.ops - middle).max() <= 0.02 * middle)


def _per_step(timeline: Timeline, when_ns: IntArray) -> IntArray:
    """Return how many moments lie in each step."""
    steps = timeline.steps
    when = np.sort(when_ns)
    return (np.searchsorted(when, steps.end_ns) - np.searchsorted(when, steps.start_ns)).astype(np.int64)


def _most(
    timeline: Timeline, names: IntArray, back: IntArray, own: IntArray, mine: BoolArray
) -> tuple[tuple[OpCount, ...], IntArray]:
    """Return the operators with most own time among some of the calls, and the median own time of every name."""
    if not len(back):
        return (), np.empty(0, np.int64)
    median = group_medians(back, own, len(names))
    calls, sums = np.bincount(back[mine], minlength=len(names)), np.bincount(back[mine], own[mine], len(names))
    steps = max(len(timeline.steps), 1)
    top = np.lexsort((-calls, -sums))[:MOST_OPS]
    top = top[calls[top] > 0]
    found = tuple(
        OpCount(
            timeline.events.strings.text(int(names[place])),
            float(calls[place]) / steps,
            int(sums[place]) // steps,
            int(median[place]),
        )
        for place in top
    )
    return found, median
