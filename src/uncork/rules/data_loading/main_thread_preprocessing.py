"""main-thread-preprocessing: the step's input is prepared on the main thread, outside a DataLoader."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.machine import Machine
from uncork.measure.python_gaps import GAP_CAUSES, PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure


@rule()
def main_thread_preprocessing(
    gaps: Ranks[PythonGaps], ledgers: Ranks[StepLedger], machines: Ranks[Machine]
) -> Cost | None:
    """Return what preparing input between the steps' operators costs."""
    values = [
        max(ledger.mean_ns(*GAP_CAUSES) * gap.share("prepare"), ledger.mean_ns("py_prep"))
        for ledger, gap in zip(ledgers, gaps, strict=True)
    ]
    cost = charge(ledgers, values)
    top = gaps[cost.place].top("prepare")
    if not cost.notable or top is None:
        return None
    ledger, machine = ledgers[cost.place], machines[cost.place]
    rest_ns = ledger.mean_step_ns - cost.ns
    workers = machine.workers_for(cost.ns, rest_ns)
    won = min(machine.hidden_share(cost.ns, rest_ns, workers), cost.share)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(won / 2, won),
        confidence=sure(ledger, 0.8),
        location=replace(top.location, rank=cost.rank),
        evidence=(Evidence("preparation_share", cost.share, "share", NOTABLE_SHARE),),
        params={"where": where(top.location) or "preprocessing", "workers": workers},
    )
