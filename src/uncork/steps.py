"""Steps: the stretches of a recording that are looked at, and which of the first ones are not."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from uncork.intervals import Intervals, intervals
from uncork.quantiles import median
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

WARM_UP_RATIO = 3
"""A first step that takes this many times the median of the others, the loader aside, is warm-up (pitfall 1 of the
source article; labelled traces: up to 2.6 in steady ones, 3.2 and more where first uses fill it)."""
LEAST_STEPS_WITH_WARM_UP = 3
"""Fewer steps cannot tell a slow first one from a slow one."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a recording, in order and apart from each other; arrays have shape (steps,).

    Args:
        start_ns: Start of each.
        end_ns: End of each.
        marked: Whether the recording marks its steps; False: the whole window is one.
        names: The marks' names; one empty text where there are none.
        ends_early_share: Share of the window in which the device still works after the last mark's end; where it is
            over `RUNS_AHEAD_SHARE`, steps are bounded by their first work on the device.
        left_out_ns: Durations of marked steps at the beginning that are left out.
        blind: How many of these are left out because none of the kernels that they launch is recorded; the others are
            warm-up.
    """

    start_ns: IntArray
    end_ns: IntArray
    marked: bool
    names: tuple[str, ...]
    ends_early_share: float = 0.0
    left_out_ns: tuple[int, ...] = ()
    blind: int = 0

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.start_ns)

    @property
    def dur_ns(self) -> IntArray:
        """Return the durations."""
        return self.end_ns - self.start_ns

    @property
    def intervals(self) -> Intervals:
        """Return the time that belongs to any step."""
        return intervals(self.start_ns, self.end_ns)

    def at(self, when_ns: IntArray) -> IntArray:
        """Return the step in which each moment lies, -1 where none does; shape as given."""
        step = np.searchsorted(self.start_ns, when_ns, side="right") - 1
        return np.where((step >= 0) & (when_ns < self.end_ns[np.maximum(step, 0)]), step, -1)


def count_blind(start_ns: IntArray, end_ns: IntArray, launched_ns: IntArray, recorded: BoolArray) -> int:
    """Return how many first steps launch kernels of which none is recorded; 0 where no step's kernels are.

    Args:
        start_ns: Start of each step.
        end_ns: End of each.
        launched_ns: When each kernel was launched.
        recorded: Which of these kernels are in the recording.
    """
    step = np.searchsorted(start_ns, launched_ns, side="right") - 1
    inside = (step >= 0) & (launched_ns < end_ns[np.maximum(step, 0)])
    launches = np.bincount(step[inside], minlength=len(start_ns))
    kernels = np.bincount(step[inside & recorded], minlength=len(start_ns))
    seen = (launches == 0) | (kernels > 0)
    return int(np.argmax(seen)) if kernels.any() else 0


def without_warm_up(steps: Steps, waited_ns: IntArray) -> Steps:
    """Return steps without first ones many times as long as the others, whatever each waited for the loader."""
    if len(steps) < LEAST_STEPS_WITH_WARM_UP:
        return steps
    own = steps.dur_ns - waited_ns
    first = 0
    while len(steps) - first >= LEAST_STEPS_WITH_WARM_UP and own[first] > WARM_UP_RATIO * median(own[first + 1 :]):
        first += 1
    return replace(
        steps,
        start_ns=steps.start_ns[first:],
        end_ns=steps.end_ns[first:],
        names=steps.names[first:],
        left_out_ns=(*steps.left_out_ns, *steps.dur_ns[:first].tolist()),
    )
