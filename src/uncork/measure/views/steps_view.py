"""StepsView: each step's time by cause, and which steps are not like the others."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from uncork.events import IntArray
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.step_ledger import StepLedger
from uncork.measure.views.names import printable
from uncork.quantiles import median, quantile
from uncork.records import dataclass

OUTLIER_RATIO = 1.5
"""A step this much longer than the median is pointed out; so is one over three interquartile ranges above the third
quartile (Tukey's far-out fence)."""
WARM_UP_RATIO = 1.5
_MOST_STEPS = 2_000


@dataclass(frozen=True, eq=False)
class StepsView(Measurement):
    """The steps of one rank.

    Args:
        names: What each step is called: its number where the mark has one.
        phases: ``warm_up steady outlier`` of each step.
        causes: Causes with any time, by the time they take in all.
        ns: Time of each cause in each step, int64 (causes, steps).
        step_ns: Wall time of each step, int64 (steps,).
    """

    view: ClassVar[bool] = True

    names: tuple[str, ...]
    phases: tuple[str, ...]
    causes: tuple[str, ...]
    ns: IntArray
    step_ns: IntArray

    @classmethod
    def of(cls, rank: Rank) -> "StepsView":
        """Return the steps of a rank; missing where they are not marked."""
        ledger, steps = rank.made(StepLedger), rank.timeline.steps
        if not steps.marked or not len(steps):
            raise MissingEvidence("steps")
        names = tuple(printable(name.rpartition("#")[2] or name) for name in steps.names)
        return cls(
            names=names[:_MOST_STEPS],
            phases=phases(ledger.step_ns)[:_MOST_STEPS],
            causes=(),
            ns=np.empty((0, min(len(names), _MOST_STEPS)), np.int64),
            step_ns=ledger.step_ns[:_MOST_STEPS],
        ).charged(ledger)

    def charged(self, ledger: StepLedger) -> "StepsView":
        """Return the steps by the causes of a ledger: where waits were told apart only after all ranks were read."""
        total = ledger.ns.sum(axis=1)
        order = [int(one) for one in np.argsort(-total, kind="stable") if total[one] > 0]
        causes = tuple(ledger.causes[one] for one in order)
        return replace(self, causes=causes, ns=ledger.ns[order][:, : len(self.names)])


def phases(step_ns: IntArray) -> tuple[str, ...]:
    """Return for each step whether it belongs to the warm-up, is an outlier, or steady.

    The warm-up is the run of steps at the beginning that are over `WARM_UP_RATIO` times the median of the rest.
    """
    count = len(step_ns)
    if count < 3:
        return ("steady",) * count
    low, middle, high = (quantile(step_ns, share) for share in (0.25, 0.5, 0.75))
    long = step_ns > max(OUTLIER_RATIO * middle, high + 3 * (high - low))
    warm = 0
    while warm < count // 2 and step_ns[warm] > WARM_UP_RATIO * median(step_ns[warm + 1 :]):
        warm += 1
    return tuple(
        "warm_up" if place < warm else "outlier" if is_long else "steady" for place, is_long in enumerate(long.tolist())
    )
