"""WarmUp: how much of a recording is there for the first time only."""

import numpy as np

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.quantiles import median
from uncork.records import dataclass
from uncork.steps import LEAST_STEPS_WITH_WARM_UP


@dataclass(frozen=True)
class WarmUp(Measurement):
    """The first step against the others, and calls that carry a first use.

    Args:
        first_ns: Wall time of the first step.
        others_ns: Median of the other steps; None where there are too few to compare with.
        first_use_share: Share of all steps in calls that carry a first use (`uncork.host_causes.first_use`).
        by_recorder: Whether the recorder chose the steps.
    """

    first_ns: int
    others_ns: int | None
    first_use_share: float
    by_recorder: bool

    @property
    def ratio(self) -> float | None:
        """Return how many times as long as the others the first step is, where that can be told.

        The recorder has let earlier steps pass: a first one that is longer than the two beside it is chance.
        """
        return self.first_ns / self.others_ns if self.others_ns and not self.by_recorder else None

    @classmethod
    def of(cls, rank: Rank) -> "WarmUp":
        """Return both for a rank; one step that shows no first use tells nothing."""
        ledger, steps = rank.ledger, rank.timeline.steps
        total = int(ledger.step_ns.sum())
        used = int(ledger.ns[ledger.causes.index("first_use")].sum()) if "first_use" in ledger.causes else 0
        warm_up_ns = steps.left_out_ns[steps.blind :]
        enough = steps.marked and len(steps) + len(warm_up_ns) >= LEAST_STEPS_WITH_WARM_UP
        if not enough and not used:
            raise MissingEvidence("steps")
        # Steps that are left out as warm-up already are before those of the ledger.
        in_order = np.append(warm_up_ns, ledger.step_ns)
        return cls(
            first_ns=int(in_order[0]),
            others_ns=round(median(in_order[1:])) if enough else None,
            first_use_share=used / total if total else 0.0,
            by_recorder=rank.recording.run is not None,
        )
