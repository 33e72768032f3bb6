"""WarmUp: how much of a recording is there for the first time only."""

from dataclasses import dataclass

import numpy as np

from uncork.measure import Measurement, MissingEvidence, Rank

LEAST_STEPS = 3
"""Fewer steps cannot tell a slow first one from a slow one."""


@dataclass(frozen=True)
class WarmUp(Measurement):
    """The first step against the others, and calls that carry a first use.

    Args:
        first_ns: Wall time of the first step.
        ratio: It over the median of the others; 0 where there are too few.
        first_use_share: Share of all steps in calls that carry a first use (`uncork.host_causes.first_use`).
    """

    first_ns: int
    ratio: float
    first_use_share: float

    @classmethod
    def of(cls, rank: Rank) -> "WarmUp":
        """Return both for a rank; one step that shows no first use tells nothing."""
        ledger, steps = rank.ledger, rank.timeline.steps
        total = int(ledger.step_ns.sum())
        used = int(ledger.ns[ledger.causes.index("first_use")].sum()) if "first_use" in ledger.causes else 0
        enough = steps.marked and len(steps) + len(steps.left_out_ns) >= LEAST_STEPS
        if not enough and not used:
            raise MissingEvidence("steps")
        # Steps that are left out as warm-up already are before those of the ledger.
        in_order = np.append(steps.left_out_ns, ledger.step_ns)
        others = float(np.median(in_order[1:])) if enough else 0.0
        return cls(
            first_ns=int(in_order[0]),
            ratio=float(in_order[0]) / others if others else 0.0,
            first_use_share=used / total if total else 0.0,
        )
