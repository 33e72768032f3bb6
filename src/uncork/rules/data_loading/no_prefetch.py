"""no-prefetch: workers idle, and still no batch is ready when the step asks for one."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.measure.worker_starts import WorkerStarts
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

EMPTY_SHARE = 0.3
"""Share of requests that found the queue empty; a vendor-neutral monitor warns at 0.2 and calls 0.7 critical. Below it
batches were ready, but not the one whose turn it was."""
HANDOVER_SHARE = 0.5
"""Where taking a batch over is half of the wait, a deeper queue does not help."""
IDLE_SHARE = 0.3
"""Workers that idle so much of their time could have worked ahead, had they been allowed to."""
DEFAULT_FACTOR = 2
"""Batches each worker keeps ready when the program does not say (torch.utils.data.DataLoader)."""


@rule(hidden_by=("straggling-worker",))
def no_prefetch(
    stages: Ranks[LoaderStages],
    ledgers: Ranks[StepLedger],
    machines: Ranks[Machine],
    starts: Ranks[WorkerStarts] | None,
) -> Cost | None:
    """Return the wait for data of a job whose workers are not allowed to work ahead far enough."""
    idle = [
        stage.workers > 0
        and stage.handover_share < HANDOVER_SHARE
        and 1.0 - stage.busiest_share >= IDLE_SHARE
        and (stage.empty_share is None or stage.empty_share >= EMPTY_SHARE)
        for stage in stages
    ]
    # Workers that are started anew in each epoch idle at its end: that is worker-restart-each-epoch.
    restarts = [one.again_ns for one in starts] if starts else [0] * len(stages)
    values = [
        max(ledger.mean_ns("data_loading") - again, 0) if one else 0
        for ledger, one, again in zip(ledgers, idle, restarts, strict=True)
    ]
    cost = charge(ledgers, values)
    if not cost.notable:
        return None
    stage, machine = stages[cost.place], machines[cost.place]
    factor = machine.prefetch_factor or DEFAULT_FACTOR
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.7),
        location=Location(rank=cost.rank, op="DataLoader"),
        evidence=(
            Evidence("loader_wait_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("no_batch_ready_share", stage.empty_share or 0.0, "share", EMPTY_SHARE),
            Evidence("worker_idle_share", 1.0 - stage.busiest_share, "share", IDLE_SHARE),
            Evidence("prefetch_factor", factor, "count"),
        ),
        params={"factor": 2 * factor, "idle_share": 1.0 - stage.busiest_share},
    )
