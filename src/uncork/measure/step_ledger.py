"""StepLedger: where each step's time went, cause by cause."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uncork.intervals import covered_ns
from uncork.ledger import OUTSIDE, Ledger
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.core_waits import CoreWaits
from uncork.measure.host_bandwidth import memory_bound_share
from uncork.measure.host_pieces import has_frames
from uncork.measure.profiled import python_shares
from uncork.quantiles import median
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]

FRAME_CAUSES = ("py_prep", "io", "py_stack")
"""Causes that only Python frames can tell, or cProfile; without them such a gap is unexplained."""


STALL_RATIO = 3
"""A step whose own time is this many times the median's did something else (as `timeline.WARM_UP_RATIO`)."""
STALLED_SHARE = 0.1
"""More such steps than this share are a part of the job; one is never."""
NOT_ITS_OWN = ("data_loading", "core_wait", "py_prep", "comm_wait", *OUTSIDE)
"""Causes that come in bursts by nature, or from elsewhere: workers hand over several batches at once."""
PARTS = 8
"""Where there is one step only, equal parts of it show whether its time goes the same way throughout."""


@dataclass(frozen=True, eq=False)
class StepLedger(Measurement):
    """Every nanosecond of each step, given to exactly one cause.

    Args:
        causes: Names of the causes (`uncork.ledger.CAUSES`).
        ns: Time of each cause in each step, int64 (causes, steps); columns sum to `step_ns`.
        step_ns: Wall time of each step, int64 (steps,), first-use time included.
        on_device: Whether the step is partitioned by what the device does (else by the main thread).
        busy_ns: Time of each step in which the device (or, without one, an operator) works, int64 (steps,).
        marked: Whether the recording marks its steps; False: the whole window counts as one step.
        part_ns: Time of each cause in equal parts of an only step, int64 (causes, parts); None with several steps.
    """

    causes: tuple[str, ...]
    ns: IntArray
    step_ns: IntArray
    on_device: bool
    busy_ns: IntArray
    marked: bool
    part_ns: IntArray | None = None

    @classmethod
    def of(cls, rank: Rank) -> "StepLedger":
        """Return the ledger of a rank."""
        ledger, steps = rank.ledger, rank.timeline.steps
        ns, part_ns = ledger.ns, None
        if len(steps) == 1:
            bounds = np.linspace(*rank.timeline.window, PARTS + 1).astype(np.int64)
            part_ns = np.array([covered_ns(taken, bounds[:-1], bounds[1:]) for taken in ledger.intervals.values()])
        if told := _python_told(rank):
            ns = _with_python(ledger.causes, ns, told)
            part_ns = None if part_ns is None else _with_python(ledger.causes, part_ns, told)
        causes, share = ledger.causes, memory_bound_share(rank)
        if share:
            # The names of operators do not tell large tensors from small ones; sizes do.
            causes = (*causes, "bandwidth")
            ns = _split(ledger.causes, ns, share)
            part_ns = None if part_ns is None else _split(ledger.causes, part_ns, share)
        if (waits := _waits_for_workers(rank)) is not None:
            ns = _with_core_wait(causes, ns, waits)
            part_ns = None if part_ns is None else _with_core_wait(causes, part_ns, waits)
            causes = (*causes, "core_wait")
        return cls(causes, ns, ledger.step_ns, ledger.on_device, ledger.busy_ns, steps.marked, part_ns)

    @property
    def own_ns(self) -> IntArray:
        """Return the time of each step without what comes in bursts or from elsewhere, int64 (steps,)."""
        own: IntArray = self.step_ns - self.ns[[cause in NOT_ITS_OWN for cause in self.causes]].sum(axis=0)
        return own

    @property
    def stalled(self) -> npt.NDArray[np.bool_]:
        """Return which steps are rare and far longer than the others, whatever the loader took, bool (steps,)."""
        own = self.own_ns
        long: npt.NDArray[np.bool_] = own > STALL_RATIO * median(own) if len(own) > 2 else np.zeros(len(own), bool)
        return long if long.sum() <= max(1, STALLED_SHARE * len(own)) else np.zeros(len(own), bool)

    def only(self, steps: npt.NDArray[np.bool_]) -> "StepLedger":
        """Return the ledger of some of the steps."""
        return replace(self, ns=self.ns[:, steps], step_ns=self.step_ns[steps], busy_ns=self.busy_ns[steps])

    def mean_ns(self, *causes: str) -> int:
        """Return the mean time per step that goes to some causes together."""
        steps = self.ns.shape[1]
        return int(sum(self._sum_ns[one] for one in set(causes) if one in self._sum_ns) / steps) if steps else 0

    @cached_property
    def _sum_ns(self) -> dict[str, int]:
        return dict(zip(self.causes, self.ns.sum(axis=1).tolist(), strict=True))

    @cached_property
    def mean_step_ns(self) -> int:
        """Return the mean wall time of a step without what is outside steady steps."""
        return int(self.step_ns.mean()) - self.mean_ns(*OUTSIDE) if len(self.step_ns) else 0

    @property
    def waited_for_ns(self) -> int:
        """Return the mean time of a step as other ranks see it: they wait for stalls, too."""
        return self.mean_step_ns + self.mean_ns("stall")

    @property
    def busy_share(self) -> float:
        """Return the share of the steps in which the device (without one, an operator) works."""
        total = int(self.step_ns.sum())
        return int(self.busy_ns.sum()) / total if total else 0.0

    def share(self, *causes: str) -> float:
        """Return the share of the step that goes to some causes together."""
        return self.mean_ns(*causes) / self.mean_step_ns if self.mean_step_ns else 0.0


def typical(ledgers: Sequence[StepLedger]) -> tuple[StepLedger, ...]:
    """Return the ledgers without the steps that stalled on any rank: one stall of three says little about the job."""
    if len({len(ledger.step_ns) for ledger in ledgers}) > 1:
        return tuple(ledger.only(~ledger.stalled) for ledger in ledgers)
    kept = ~np.any([ledger.stalled for ledger in ledgers], axis=0)
    return tuple(ledger.only(kept) if kept.any() else ledger for ledger in ledgers)


def _split(causes: tuple[str, ...], known: IntArray, share: float) -> IntArray:
    """Return times by cause with a row more: the share of the compute operators that memory's bandwidth holds up."""
    ns = known.copy()
    bound = (ns[causes.index("compute")] * share).astype(np.int64)
    ns[causes.index("compute")] -= bound
    return np.concatenate([ns, bound[None]])


def _waits_for_workers(rank: Rank) -> CoreWaits | None:
    """Return how long the thread stood in the queue, where the loader's workers have a part in that."""
    try:
        waits = rank.made(CoreWaits)
    except MissingEvidence:
        return None
    return waits if waits.by_workers_ns else None


def _with_core_wait(causes: tuple[str, ...], known: IntArray, waits: CoreWaits) -> IntArray:
    """Return times by cause with a row more: the wait for cores of the loader's workers, out of what it was taken for.

    Args:
        causes: Names of the rows.
        known: Times, int64 (causes, steps).
        waits: How much of each cause it is.
    """
    shares = np.array([waits.taken_share(cause) for cause in causes])
    moved = (known * shares[:, None]).astype(np.int64)
    return np.concatenate([known - moved, moved.sum(axis=0)[None]])


def _python_told(rank: Rank) -> dict[str, float]:
    """Return the share of the step by cause that Python frames of another recording show, else cProfile."""
    functions = rank.recording.functions
    if has_frames(rank.deep) or functions is None:
        if rank.deep is rank.timeline:
            return {}
        told = {cause: _share(rank.deep_ledger, cause) for cause in (*FRAME_CAUSES, "unrecorded")}
        told["unrecorded"] = max(told["unrecorded"] - _share(rank.ledger, "unrecorded"), 0.0)  # blocking calls: in both
        return {cause: share for cause, share in told.items() if share}
    if rank.recording.run is None:
        return {}  # a profile of a whole program says nothing of its steps
    own, prepares = sum(python_shares(functions).values(), np.zeros(2)).tolist()
    return {"py_stack": own, "py_prep": prepares} if own + prepares > 0 else {}


def _share(ledger: Ledger, cause: str) -> float:
    """Return the share of the steps that goes to a cause."""
    step_ns = int(ledger.step_ns.sum())
    return int(ledger.ns[ledger.causes.index(cause)].sum()) / step_ns if step_ns and cause in ledger.causes else 0.0


def _with_python(causes: tuple[str, ...], known: IntArray, told: Mapping[str, float]) -> IntArray:
    """Return times by cause with the unexplained gaps given to what another recording shows of Python.

    Frames and cProfile slow Python down, so the share of the step that it takes there is the most that moves; the rest
    stays unexplained.
    """
    ns = known.copy()
    if "unexplained" not in causes:
        return ns
    whole, unexplained = sum(told.values()), causes.index("unexplained")
    moves = np.minimum(ns[unexplained], (ns.sum(axis=0) * whole).astype(np.int64))
    for cause, share in told.items():
        part = (moves * (share / whole)).astype(np.int64)
        ns[causes.index(cause)] += part
        ns[unexplained] -= part
    return ns
