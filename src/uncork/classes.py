"""From causes to classes: how much of a step each of the five classes could give back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from uncork.findings import CLASSES, Bottleneck
from uncork.ledger import CAUSES, OUTSIDE
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import EXPLAINS_WAIT
from uncork.quantiles import median
from uncork.records import dataclass

FloatArray = npt.NDArray[np.float64]

CONTRIBUTES_SHARE = 0.1
"""A class that could give back this share of the step is named beside the main one."""
CLOSE_RATIO = (0.6, 1.8)
"""Memory-bound over arithmetic kernels: within this band neither can be left out."""
UNKNOWN = ("unexplained", "unrecorded")
ARITHMETIC = ("gemm", "other_kernel", "compute")
"""On a device and, without one, on the CPU."""


@dataclass(frozen=True, eq=False)
class Shares:
    """What each class could give back on one rank.

    Args:
        mean: Class → share of the mean step without first-use time.
        steps: The same in each step, or in each part of an only one, float64 (classes, steps).
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
    arithmetic = sum(float(time[cause].sum()) for cause in ARITHMETIC if cause in time)
    bandwidth = float(time["bandwidth"].sum()) if "bandwidth" in time else 0.0
    # On a device that mostly computes, what stands between the matrix products goes with them.
    of_bandwidth = Bottleneck.COMPUTE if bandwidth <= arithmetic else Bottleneck.MEMORY
    rows, wall = _by_class(ledger, ledger.ns, of_bandwidth)
    parts, part_wall = (rows, wall) if ledger.part_ns is None else _by_class(ledger, ledger.part_ns, of_bandwidth)
    whole = float(wall.sum())
    return Shares(
        mean=dict(zip(CLASSES, (rows.sum(axis=1) / whole).tolist(), strict=True)),
        steps=parts / part_wall,
        unknown=sum(float(time[cause].sum()) for cause in UNKNOWN if cause in time) / whole,
        close_pair=arithmetic > 0 and CLOSE_RATIO[0] <= bandwidth / arithmetic <= CLOSE_RATIO[1],
        unnamed=float(time["other_kernel"].sum()) / max(arithmetic + bandwidth, 1.0) if "other_kernel" in time else 0.0,
    )


def by_roofline(ledger: StepLedger, memory_bound_share: float) -> StepLedger:
    """Return a ledger with the part of its arithmetic that waits for memory among the memory-bound kernels.

    Args:
        ledger: Of one rank; names alone cannot tell thin matrix products from full ones.
        memory_bound_share: Share of the arithmetic's time, by the operators' shapes.
    """
    if not memory_bound_share or "gemm" not in ledger.causes:
        return ledger
    gemm, bandwidth = ledger.causes.index("gemm"), ledger.causes.index("bandwidth")

    def moved(ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        split = ns.copy()
        part = (ns[gemm] * memory_bound_share).astype(np.int64)
        split[gemm] -= part
        split[bandwidth] += part
        return split

    return replace(ledger, ns=moved(ledger.ns), part_ns=None if ledger.part_ns is None else moved(ledger.part_ns))


def _by_class(ledger: StepLedger, ns: npt.NDArray[np.int64], of_bandwidth: Bottleneck) -> tuple[FloatArray, FloatArray]:
    """Return what each class could give back in each step in ns, float64 (classes, steps), and the steps' length."""
    rows = np.zeros((len(CLASSES), ns.shape[1]))
    for cause, spent in zip(ledger.causes, ns, strict=True):
        bottleneck, recoverable = CAUSES[cause].bottleneck, CAUSES[cause].recoverable
        if cause == "bandwidth":
            # Without a device it is the main thread's own time, which counts fully, as its other operators do.
            bottleneck, recoverable = of_bandwidth, recoverable if ledger.on_device else 1.0
        if bottleneck is not None:
            rows[CLASSES.index(bottleneck)] += spent * recoverable
    outside = ns[[cause in OUTSIDE for cause in ledger.causes]].sum(axis=0)
    return rows, np.maximum(ns.sum(axis=0) - outside, 1.0)


def excess_of(ledgers: Sequence[StepLedger], late: Sequence[int], wait_share: float) -> Bottleneck | None:
    """Return the class on which late ranks spend more time than the others' median; None if it is unexplained.

    Args:
        ledgers: One per rank.
        late: Places of the late ranks.
        wait_share: Share of the step that the others wait for them.
    """
    others = [place for place in range(len(ledgers)) if place not in late] or list(range(len(ledgers)))
    more: dict[Bottleneck | None, float] = {}
    for cause, kind in CAUSES.items():
        if cause in ("comm", "comm_wait", *OUTSIDE):
            continue
        usual = median([ledgers[place].mean_ns(cause) for place in others])
        mean = float(np.mean([ledgers[place].mean_ns(cause) for place in late]))
        bottleneck = Bottleneck.COMPUTE if cause == "bandwidth" else kind.bottleneck
        more[bottleneck] = more.get(bottleneck, 0.0) + mean - usual
    most = max(more, key=lambda one: more[one])
    step_ns = float(np.mean([ledger.mean_step_ns for ledger in ledgers]))
    return most if more[most] >= EXPLAINS_WAIT * wait_share * step_ns else None
