"""workers-take-cores: the loader's workers have the cores that the training thread is ready to run on."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.core_waits import CoreWaits
from uncork.measure.loader_code import LoaderCode
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import ITEM_WON_SHARE
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge_causes, sure

MOSTLY_SHARE = 0.5
"""Workers with less than half of the cores taken are not who keeps the thread waiting."""


@rule()
def workers_take_cores(
    waits: Ranks[CoreWaits], ledgers: Ranks[StepLedger], codes: Ranks[LoaderCode] | None
) -> Cost | None:
    """Return the training thread's wait for cores that the workers have; less work in them gives it back."""
    cost = charge_causes(ledgers, "core_wait")
    wait = waits[cost.place]
    if not cost.notable or wait.workers_share < MOSTLY_SHARE:
        return None
    top = codes[cost.place].top() if codes else None
    place = top.location if top else Location(op="DataLoader")
    worked_ns = round(wait.worker_cores * wait.step_ns)
    train_ns = round(wait.own_cores * wait.step_ns)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * ITEM_WON_SHARE / 2, cost.share),
        confidence=sure(ledgers[cost.place], 0.8),
        location=replace(place, rank=cost.rank),
        evidence=(
            Evidence("core_wait_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("workers_of_taken_share", wait.workers_share, "share", MOSTLY_SHARE),
            Evidence("worker_cpu_per_step", worked_ns, "ns"),
        ),
        params={
            "workers": wait.workers,
            "cores": wait.cores,
            "worked_ns": worked_ns,
            "train_ns": train_ns,
            "least_ns": (worked_ns + train_ns) // wait.cores,
            "waited_ns": cost.ns,
            "where": top.where if top else "Dataset.__getitem__",
        },
    )
