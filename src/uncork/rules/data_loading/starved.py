"""starved: the main process loads its own data (num_workers=0), and every step waits for it."""

from uncork.findings import Cost, Evidence, Location
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.loader import LoaderWait
from uncork.measure.loader_code import LoaderCode
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import cheaper_item, named_by_stage, own_loading, received_share
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure
from uncork.units import format_share

LOW_BUSY_SHARE = 0.3
"""The article's sign of a starved device (requirement R3.3)."""
MOST_CPU_SHARE = 0.5
"""The article's sign that loading dominates the host (requirement R3.3)."""
NEXT = "enumerate(DataLoader).__next__"


@rule()
def starved(
    waits: Ranks[LoaderWait], ledgers: Ranks[StepLedger], machines: Ranks[Machine], codes: Ranks[LoaderCode] | None
) -> Cost | None:
    """Return what loading in the main process costs."""
    single = [wait.iterator == "single" for wait in waits]
    cost = charge(
        ledgers, [ledger.mean_ns("data_loading") if alone else 0 for ledger, alone in zip(ledgers, single, strict=True)]
    )
    if not cost.notable:
        return None
    ledger, wait, machine = ledgers[cost.place], waits[cost.place], machines[cost.place]
    code = codes[cost.place] if codes else None
    rest_ns = max(ledger.mean_step_ns - wait.mean_ns, 0)
    workers = machine.workers_for(wait.mean_ns, rest_ns, waiting=code is not None and code.waits)
    won = min(machine.hidden_share(wait.mean_ns, rest_ns, workers), cost.share)
    won = max(won - received_share(wait, ledger), 0.0)
    top, worth = cheaper_item(code, cost.share)
    in_memory = code is not None and bool(code.parts) and not (top or machine.dataset.file or code.waits)
    advice, gain = own_loading(
        machine, cost.share, won, worth, in_memory=in_memory, named=named_by_stage(code, cost.share)
    )
    if not advice:
        return None
    place = top.location if top else machine.dataset
    evidence = [
        Evidence("loader_wait_share", cost.share, "share", NOTABLE_SHARE),
        Evidence("workers", 0, "count", 0, "="),
    ]
    if ledger.on_device:
        evidence.append(Evidence("device_busy_share", ledger.busy_share, "share", LOW_BUSY_SHARE, "<"))
    else:
        evidence.append(Evidence("loader_host_share", cost.share, "share", MOST_CPU_SHARE))
    if top:
        evidence.append(Evidence("loader_function_share", top.share, "share"))
    return Cost(
        ns_per_step=cost.ns,
        gain=gain,
        confidence=sure(ledger, 0.95),
        location=Location(cost.rank, None, place.file, place.line, place.function, top.location.op if top else NEXT),
        evidence=tuple(evidence),
        advice=advice,
        params={
            "wait_ns": wait.mean_ns,
            "workers": workers,
            "where": top.where if top else where(place) or "Dataset.__getitem__",
            "most": f"{top.where}, {format_share(top.share)}" if top else "@unknown.place",
        },
    )
