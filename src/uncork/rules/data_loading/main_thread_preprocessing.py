"""main-thread-preprocessing: the step's input is prepared on the main thread, outside a DataLoader."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.machine import Machine
from uncork.measure.preparation import Preparation
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure


@rule()
def main_thread_preprocessing(
    preparations: Ranks[Preparation], ledgers: Ranks[StepLedger], machines: Ranks[Machine]
) -> Cost | None:
    """Return what preparing input between the steps' operators costs."""
    cost = charge(ledgers, [one.ns for one in preparations])
    if not cost.notable:
        return None
    ledger, machine, place = ledgers[cost.place], machines[cost.place], preparations[cost.place].location
    rest_ns = ledger.mean_step_ns - cost.ns
    workers = machine.workers_for(cost.ns, rest_ns)
    won = min(machine.hidden_share(cost.ns, rest_ns, workers), cost.share)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(won / 2, won),
        confidence=sure(ledger, 0.8),
        location=replace(place, rank=cost.rank),
        evidence=(Evidence("preparation_share", cost.share, "share", NOTABLE_SHARE),),
        params={"where": where(place) or "preprocessing", "workers": workers},
    )
