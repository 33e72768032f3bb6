"""slow-handover: batches are ready, and taking them over from the workers makes the step wait."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

LEAST_HANDOVER_SHARE = 0.25
"""Less of the wait is not what makes it long."""


@rule()
def slow_handover(stages: Ranks[LoaderStages], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the part of the wait for data in which a batch is received from a worker, and pinned."""
    shares = [stage.handover_share if stage.workers else 0.0 for stage in stages]
    cost = charge(
        ledgers, [ledger.mean_ns("data_loading") * share for ledger, share in zip(ledgers, shares, strict=True)]
    )
    if not cost.notable or shares[cost.place] < LEAST_HANDOVER_SHARE:
        return None
    stage = stages[cost.place]
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.75),
        location=Location(rank=cost.rank, op="DataLoader.__next__"),
        evidence=(
            Evidence("loader_wait_share", ledgers[cost.place].share("data_loading"), "share", NOTABLE_SHARE),
            Evidence("handover_share", shares[cost.place], "share", LEAST_HANDOVER_SHARE),
        ),
        params={"deserialise_ns": stage.deserialise_ns, "pin_ns": stage.pin_ns},
    )
