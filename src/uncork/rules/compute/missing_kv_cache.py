"""missing-kv-cache: generation computes the whole text anew for each token."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.growing_inputs import GrowingInputs
from uncork.measure.inference import Inference
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

LEAST_WON = 0.25
"""Share of the repeated work that is surely saved: a product with one row still reads its whole weight."""


@rule()
def missing_kv_cache(inputs: Ranks[GrowingInputs], kinds: Ranks[Inference], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time in which a program that only runs forward computes rows that it computed before."""
    values = [
        one.repeated_share * ledger.mean_step_ns if kind.forward_only else 0.0
        for one, kind, ledger in zip(inputs, kinds, ledgers, strict=True)
    ]
    cost = charge(ledgers, values)
    one = inputs[cost.place]
    if not cost.notable or one.largest is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * LEAST_WON, cost.share),
        confidence=sure(ledgers[cost.place], 0.85),
        location=one.largest.location(cost.rank),
        evidence=(
            Evidence("repeated_rows_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("input_lengths", float(one.lengths), "count", one.least_lengths - 1),
        ),
        params={
            "first": one.first_rows,
            "last": one.last_rows,
            "more": one.more_rows,
            "lengths": one.lengths,
            "where": one.largest.where,
        },
    )
