"""sync-every-micro-batch: gradients are exchanged after every micro-batch though only the last one needs it."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.step_ledger import StepLedger
from uncork.measure.wrappers import Wrappers
from uncork.rules.rule import rule

MOST_SYNCED_SHARE = 0.8
"""Of the forward passes: with no_sync it is one in every accumulation."""


@rule()
def sync_every_micro_batch(
    wrappers: Ranks[Wrappers], collectives: Ranks[Collectives], ledger: Ranks[StepLedger]
) -> Cost | None:
    """Return the exposed communication of all micro-batches but the last of each optimiser step."""
    mine = wrappers[0]
    per_step = mine.ddp_forwards / mine.optimizer_steps if mine.optimizer_steps else 0.0
    if per_step < 2 or mine.synced_forwards < MOST_SYNCED_SHARE * mine.ddp_forwards:
        return None
    step_ns = float(np.mean([one.mean_step_ns for one in ledger]))
    exposed_ns = float(np.mean([one.mean_ns("comm") for one in ledger]))
    cost_ns = exposed_ns * (1 - 1 / per_step)
    return Cost(
        ns_per_step=round(cost_ns),
        gain=Gain(0.5 * cost_ns / step_ns if step_ns else 0.0, cost_ns / step_ns if step_ns else 0.0),
        confidence=0.8,
        location=Location(op=collectives[0].names[0]),
        evidence=(
            Evidence("forwards_per_optimizer_step", per_step, "count", 2),
            Evidence("synced_forward_share", mine.synced_forwards / mine.ddp_forwards, "share", MOST_SYNCED_SHARE),
        ),
        params={"micro_batches": round(per_step)},
    )
