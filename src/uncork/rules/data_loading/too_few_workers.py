"""too-few-workers: worker processes load the data, and every step still waits for it."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.loader import LoaderWait
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import named_by_stage
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

BUSY_SHARE = 0.7
"""Workers that idle more than the rest are not too few."""
EMPTY_SHARE = 0.3
"""Requests that found no batch ready; shown beside the share (capture study, 4)."""
SELDOM_EMPTY_SHARE = 0.1
"""Where fewer requests than this found no batch ready, more workers would make none come sooner, however busy they are
(six workers that fill nearly all of their time: 0.04)."""
BURST_SHARE = 0.8
"""Where one wait is so much of all, one slow batch may be the reason instead of too few workers."""


@rule()
def too_few_workers(
    waits: Ranks[LoaderWait],
    ledgers: Ranks[StepLedger],
    machines: Ranks[Machine],
    stages: Ranks[LoaderStages] | None,
    codes: Ranks[LoaderCode] | None,
) -> Cost | None:
    """Return what waiting for the workers costs."""
    # The wait that follows the making of an iterator is for the workers' start (worker-restart-each-epoch).
    behind = [1.0 - wait.start_share if wait.iterator == "multi" else 0.0 for wait in waits]
    cost = charge(
        ledgers, [ledger.mean_ns("data_loading") * part for ledger, part in zip(ledgers, behind, strict=True)]
    )
    ledger, wait, machine = ledgers[cost.place], waits[cost.place], machines[cost.place]
    stage, code = stages[cost.place] if stages else None, codes[cost.place] if codes else None
    if not cost.notable or (stage and _keeps_up(stage)):
        return None
    now = (stage.workers if stage else 0) or machine.num_workers or 0
    rest_ns = max(ledger.mean_step_ns - wait.mean_ns, 0)
    # The workers together make one batch per step, so each takes as many steps as there are workers.
    load_ns = stage.mean_ns("busy_ns") if stage and stage.makers else max(now, 1) * ledger.mean_step_ns
    waiting, awake = code is not None and code.waits, stage.awake_share if stage else None
    wanted = machine.workers_for(load_ns if now else float("inf"), rest_ns, waiting=waiting, awake_share=awake)
    more, named = wanted > now, named_by_stage(code, cost.share)
    if named and not more:
        return None  # the function that the workers are busy with has a finding of its own
    won = min(machine.hidden_share(load_ns, rest_ns, wanted), cost.share) if more and now else cost.share
    top = code.top() if code else None
    place = top.location if top else machine.dataset
    evidence = [Evidence("loader_wait_share", cost.share, "share", NOTABLE_SHARE), Evidence("workers", now, "count")]
    if stage and (empty := stage.empty_share) is not None:
        evidence.append(Evidence("no_batch_ready_share", empty, "share", EMPTY_SHARE))
        evidence.append(Evidence("worker_busy_share", stage.busiest_share, "share", BUSY_SHARE))
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0 if not more else won / 2, won),
        confidence=sure(ledger, 0.9 if stage or wait.longest_share < BURST_SHARE else 0.6),
        location=Location(cost.rank, None, place.file, place.line, place.function, "enumerate(DataLoader).__next__"),
        evidence=tuple(evidence if now else evidence[:1]),
        advice=(("more-workers",) if more else ()) + (() if named else ("cheaper-items", "cache")),
        params={
            "wait_ns": int(wait.wait_ns.sum()) // max(wait.calls, 1),
            "workers": wanted if now else "2 * num_workers",
            "where": top.where if top else where(place) or "Dataset.__getitem__",
        },
    )


def _keeps_up(stage: LoaderStages) -> bool:
    """Return whether the recorder saw workers with time to spare (other rules say why none is ready), or ready ones."""
    ready = stage.empty_share is not None and stage.empty_share < SELDOM_EMPTY_SHARE
    return bool(stage.makers) and (ready or stage.busiest_share < BUSY_SHARE)
