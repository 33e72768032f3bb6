"""slow-collate: putting items together into a batch is a large part of the wait for data."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.collate import Collate
from uncork.measure.host_pieces import where
from uncork.measure.loader_code import LoaderCode, Part
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.rules.loading import LEAST_STAGE_SHARE
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

WON_SHARE = 0.8
"""Stacking tensors of one shape is one copy of the batch's bytes: a fifth is left at most where it was a loop."""
MOST_OF_IT = 0.5
"""What takes half of the collation is what to change, not how items are put together."""
ITEM_STAGES = ("read", "decode", "augment")
"""What makes an item, wherever it is called."""


@rule()
def slow_collate(
    collates: Ranks[Collate],
    ledgers: Ranks[StepLedger],
    stages: Ranks[LoaderStages] | None,
    codes: Ranks[LoaderCode] | None,
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
    inside = _inside(codes[cost.place], collate) if codes else None
    # What a library's function does with items that were picked one by one, picking them together leaves out.
    advice = ("batched-items",) if collate.of_library else ("pad-once", "same-shape", "batched-items")
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARE / 2, cost.share * WON_SHARE),
        confidence=sure(ledger, 0.85 if collate.source == "stages" else 0.75),
        location=replace(inside.location if inside else collate.location, rank=cost.rank),
        evidence=(
            Evidence("loader_wait_share", ledger.share("data_loading"), "share", NOTABLE_SHARE),
            Evidence("collate_share", collate.share, "share", LEAST_STAGE_SHARE),
        ),
        advice=("once", "batched-items") if inside else advice,
        params={
            "collate_share": collate.share,
            "where": where(collate.location),
            "inside": inside.where if inside else where(collate.location),
        },
    )


def _inside(code: LoaderCode, collate: Collate) -> Part | None:
    """Return the user's function that the collate function spends most of its time in, where there is such a one.

    What takes longer than all items together cannot be called by them alone.
    """
    if code.top("collate") is None:
        top = code.top()
        share = top.share if top else 0.0
    else:  # lists that it makes bear its name, whatever they cost
        tops = [part for part in map(code.top, ITEM_STAGES) if part]
        top = max(tops, key=lambda part: part.share, default=None)
        share = sum(code.share(stage) for stage in ITEM_STAGES)
    place = collate.location
    if top is None or (top.file, top.function) == (place.file, place.function):
        return None
    return top if share - (1 - collate.share) >= MOST_OF_IT * collate.share else None
