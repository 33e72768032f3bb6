"""worker-restart-each-epoch: every epoch starts its loader workers anew."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.facts import Facts
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.measure.worker_starts import WorkerStarts
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure


@rule()
def worker_restart_each_epoch(
    starts: Ranks[WorkerStarts], ledgers: Ranks[StepLedger], machines: Ranks[Machine], facts: Ranks[Facts]
) -> Cost | None:
    """Return what starting workers again costs per step."""
    again = [
        0 if machine.persistent_workers else one.again_ns * _part(ledger, fact)
        for one, machine, ledger, fact in zip(starts, machines, ledgers, facts, strict=True)
    ]
    cost = charge(ledgers, again)
    start = starts[cost.place]
    if not cost.notable:
        return None
    repeated = start.starts > 1
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * 0.8 if repeated else 0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.9 if repeated else 0.5),
        location=Location(rank=cost.rank, op="DataLoader"),
        evidence=(
            Evidence("worker_starts", start.starts, "count", 1),
            Evidence("worker_start", start.start_ns, "ns"),
            Evidence("worker_start_share", cost.share, "share", NOTABLE_SHARE),
        ),
        params={"starts": start.starts, "start_ns": start.start_ns},
    )


def _part(ledger: StepLedger, facts: Facts) -> float:
    """Return a recorded step's share of what a step takes with what passes between steps, where starts are too."""
    told = facts.run.between if facts.run else None
    whole_ns = (told.steps_ns + told.between_ns) / told.steps if told else 0
    return min(ledger.mean_step_ns / whole_ns, 1.0) if whole_ns else 1.0
