"""slow-collate: putting items together into a batch is a large part of the wait for data."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.collate import Collate
from uncork.measure.host_pieces import where
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import LEAST_STAGE_SHARE
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

WON_SHARE = 0.8
"""Stacking tensors of one shape is one copy of the batch's bytes: a fifth is left at most where it was a loop."""


@rule()
def slow_collate(
    collates: Ranks[Collate], ledgers: Ranks[StepLedger], stages: Ranks[LoaderStages] | None
) -> Cost | None:
    """Return what collation costs while the step waits."""
    making = [one.making_share for one in stages] if stages else [1.0] * len(collates)
    cost = charge(
        ledgers,
        [
            ledger.mean_ns("data_loading") * one.share * made
            for ledger, one, made in zip(ledgers, collates, making, strict=True)
        ],
    )
    collate, ledger = collates[cost.place], ledgers[cost.place]
    if not cost.notable or collate.share < LEAST_STAGE_SHARE:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARE / 2, cost.share * WON_SHARE),
        confidence=sure(ledger, 0.85 if collate.source == "stages" else 0.75),
        location=replace(collate.location, rank=cost.rank),
        evidence=(
            Evidence("loader_wait_share", ledger.share("data_loading"), "share", NOTABLE_SHARE),
            Evidence("collate_share", collate.share, "share", LEAST_STAGE_SHARE),
        ),
        params={"collate_share": collate.share, "where": where(collate.location)},
    )
