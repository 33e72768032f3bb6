"""From causes to classes: how much of a step each of the five classes could give back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uncork.findings import CLASSES, Bottleneck
from uncork.ledger import CAUSES
from uncork.measure.step_ledger import StepLedger

FloatArray = npt.NDArray[np.float64]

CONTRIBUTES_SHARE = 0.1
"""A class that could give back this share of the step is named beside the main one."""
CLOSE_RATIO = (0.6, 1.8)
"""Memory-bound over arithmetic kernels: within this band neither can be left out."""
UNKNOWN = ("unexplained", "unrecorded")
ARITHMETIC = ("gemm", "other_kernel")


@dataclass(frozen=True, eq=False)
class Shares:
    """What each class could give back on one rank.

    Args:
        mean: Class → share of the mean step without first-use time.
        steps: The same in each step, float64 (classes, steps).
        unknown: Share of the step that nothing explains.
        close_pair: Whether compute and memory share a busy device too evenly to leave one out.
        unnamed: Share of the kernels' time in kernels whose names do not say what they do.
    """

    mean: Mapping[Bottleneck, float]
    steps: FloatArray
    unknown: float
    close_pair: bool
    unnamed: float


def class_shares(ledger: StepLedger) -> Shares:
    """Return what each class could give back on a rank; waiting for other ranks is none of its own."""
    time = {cause: ledger.ns[place].astype(np.float64) for place, cause in enumerate(ledger.causes)}
    wall = np.maximum(ledger.step_ns - time.get("first_use", 0.0), 1.0)
    arithmetic = sum(float(time[cause].sum()) for cause in ARITHMETIC if cause in time)
    bandwidth = float(time["bandwidth"].sum()) if "bandwidth" in time else 0.0
    rows = {one: np.zeros(len(wall)) for one in CLASSES}
    for cause, spent in time.items():
        kind = CAUSES[cause]
        bottleneck = kind.bottleneck
        if cause == "bandwidth" and bandwidth <= arithmetic:
            # On a device that mostly computes, what stands between the matrix products goes with them.
            bottleneck = Bottleneck.COMPUTE
        if bottleneck is not None:
            rows[bottleneck] += spent * kind.recoverable
    whole = float(wall.sum())
    return Shares(
        mean={one: float(row.sum()) / whole for one, row in rows.items()},
        steps=np.array([rows[one] / wall for one in CLASSES]),
        unknown=sum(float(time[cause].sum()) for cause in UNKNOWN if cause in time) / whole,
        close_pair=arithmetic > 0 and CLOSE_RATIO[0] <= bandwidth / arithmetic <= CLOSE_RATIO[1],
        unnamed=float(time["other_kernel"].sum()) / max(arithmetic + bandwidth, 1.0) if "other_kernel" in time else 0.0,
    )


def excess_of(ledgers: Sequence[StepLedger], late: Sequence[int]) -> Bottleneck | None:
    """Return the class on which late ranks spend more time than the others' median; None if it is unexplained.

    Args:
        ledgers: One per rank.
        late: Places of the late ranks.
    """
    others = [place for place in range(len(ledgers)) if place not in late] or list(range(len(ledgers)))
    more: dict[Bottleneck | None, float] = {}
    for cause, kind in CAUSES.items():
        if cause in ("comm", "comm_wait", "first_use"):
            continue
        median = float(np.median([ledgers[place].mean_ns(cause) for place in others]))
        mean = float(np.mean([ledgers[place].mean_ns(cause) for place in late]))
        bottleneck = Bottleneck.COMPUTE if cause == "bandwidth" else kind.bottleneck
        more[bottleneck] = more.get(bottleneck, 0.0) + mean - median
    return max(more, key=lambda one: more[one])
