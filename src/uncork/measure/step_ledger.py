"""StepLedger: where each step's time went, cause by cause."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uncork.measure import Measurement, Rank

IntArray = npt.NDArray[np.int64]


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
    """

    causes: tuple[str, ...]
    ns: IntArray
    step_ns: IntArray
    on_device: bool
    busy_ns: IntArray
    marked: bool

    @classmethod
    def of(cls, rank: Rank) -> "StepLedger":
        """Return the ledger of a rank."""
        ledger = rank.ledger
        return cls(
            ledger.causes, ledger.ns, ledger.step_ns, ledger.on_device, ledger.busy_ns, rank.timeline.steps.marked
        )

    def mean_ns(self, *causes: str) -> int:
        """Return the mean time per step that goes to some causes together."""
        rows = [place for place, cause in enumerate(self.causes) if cause in causes]
        return int(self.ns[rows].sum(axis=0).mean()) if rows and self.ns.shape[1] else 0

    @property
    def mean_step_ns(self) -> int:
        """Return the mean wall time of a step without first-use time."""
        return int(self.step_ns.mean()) - self.mean_ns("first_use") if len(self.step_ns) else 0

    def share(self, *causes: str) -> float:
        """Return the share of the step that goes to some causes together."""
        return self.mean_ns(*causes) / self.mean_step_ns if self.mean_step_ns else 0.0
