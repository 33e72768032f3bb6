"""ElementwiseRuns: operators on single elements that follow one another and could be one kernel."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from uncork.calltree import updates
from uncork.events import Kind
from uncork.findings import Location
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.whereabouts import locate
from uncork.operators import ATEN
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]

ELEMENTWISE = re.compile(
    r"^aten::(add|sub|rsub|mul|div|neg|abs|exp|log|log1p|sqrt|rsqrt|pow|square|sigmoid|tanh|relu|gelu|silu|elu|leaky_relu"
    r"|hardtanh|hardswish|softplus|clamp(_min|_max)?|where|lerp|addcmul|addcdiv|reciprocal|sin|cos|erf|maximum|minimum"
    r"|threshold|dropout|native_dropout|masked_fill|eq|ne|lt|le|gt|ge|logical_\w+|bitwise_\w+|floor|round|sign|copysign)_?$"
)
LEAST_RUN = 3
"""Shorter runs are how models are written: an activation after a bias."""
MOST_RUNS = 16


@dataclass(frozen=True)
class Run:
    """One sequence of operators that comes again and again.

    Args:
        ops: Names, in order, without ``aten::``.
        times: How often in a step.
        location: The user's frame around it, where known.
    """

    ops: tuple[str, ...]
    times: float
    location: Location


@dataclass(frozen=True)
class ElementwiseRuns(Measurement):
    """Runs of elementwise operators on the main thread, outside loader and optimizer.

    Args:
        runs: The longest in sum first.
        ops: Operators per step that lie in runs.
        saved_ops: Those that would go if every run were one operator.
        all_ops: Outermost operators per step.
    """

    runs: tuple[Run, ...]
    ops: float
    saved_ops: float
    all_ops: float

    @classmethod
    def of(cls, rank: Rank) -> "ElementwiseRuns":
        """Return the runs of a rank; without host operators there are none to see."""
        timeline = rank.timeline
        outer = _outermost(timeline)
        if not len(outer):
            raise MissingEvidence("host")
        fits = timeline.named(ELEMENTWISE, Kind.CPU_OP)[outer]
        step = timeline.steps.at(timeline.host.start_ns[outer])
        same = fits[1:] & fits[:-1] & (step[1:] == step[:-1])
        begin = np.flatnonzero(fits & np.concatenate([[True], ~same]))
        finish = np.flatnonzero(fits & np.concatenate([~same, [True]]))
        long = finish - begin + 1 >= LEAST_RUN
        begin, finish = begin[long], finish[long]
        length = finish - begin + 1
        steps = max(len(timeline.steps), 1)
        return cls(
            runs=_runs(rank, outer, begin, finish),
            ops=float(length.sum()) / steps,
            saved_ops=float((length - 1).sum()) / steps,
            all_ops=len(outer) / steps,
        )


def _outermost(timeline: Timeline) -> IntArray:
    """Return the main thread's operators that lie in no other, in order of time, outside loader and optimizer."""
    host = timeline.host
    is_op = timeline.named(ATEN, Kind.CPU_OP)
    regions, begins_ns = updates(timeline)
    begin_ns = np.zeros(len(host), np.int64)
    begin_ns[regions] = begins_ns
    skip = begin_ns > 0
    mine = is_op & (host.track == timeline.main_track) & timeline.in_steps
    mine &= ~timeline.in_loader
    places = np.flatnonzero(mine)
    inside = host.ancestor_where(is_op | skip, host.parent[places])
    # A closure inside the optimizer's step is the model's work.
    before_update = (inside >= 0) & (host.start_ns[places] < begin_ns[np.maximum(inside, 0)])
    return places[(inside < 0) | before_update]


def _runs(rank: Rank, outer: IntArray, begin: IntArray, finish: IntArray) -> tuple[Run, ...]:
    """Return the runs with the same operators and the same line together."""
    timeline = rank.timeline
    host, table, steps = timeline.host, timeline.events, max(len(timeline.steps), 1)
    count: Counter[tuple[tuple[str, ...], Location]] = Counter()
    time: Counter[tuple[tuple[str, ...], Location]] = Counter()
    for first, last, place in zip(begin.tolist(), finish.tolist(), locate(rank, outer[begin]), strict=True):
        names = tuple(name.removeprefix("aten::") for name in table.names(host.row[outer[first : last + 1]]))
        key = (names, replace(place, op=None))
        count[key] += 1
        time[key] += int(host.end_ns[outer[last]] - host.start_ns[outer[first]])
    order = sorted(time, key=lambda key: (-time[key], key[0]))
    return tuple(Run(key[0], count[key] / steps, key[1]) for key in order[:MOST_RUNS])
