"""unheld-gradients: backward computes gradients of parameters that are in no optimizer."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.step_ledger import StepLedger
from uncork.measure.unheld_gradients import UnheldGradients
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

WON_SHARES = (0.3, 1.0)
"""The gradients of inputs may still be needed: then half of a matrix product's backward goes (two products of the same
size), and none of an activation's. Measured on the CPU: 0.4 where they are needed, all where they are not."""


@rule()
def unheld_gradients(gradients: Ranks[UnheldGradients], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of the backward pass in modules that nobody trains."""
    cost = charge(ledgers, [one.backward_ns for one in gradients])
    one = gradients[cost.place]
    if not cost.notable or one.largest is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledgers[cost.place], 0.85),
        location=replace(one.largest.location(cost.rank), module=one.modules[0]),
        evidence=(
            Evidence("unheld_backward_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("unheld_modules", len(one.modules), "count", 0),
        ),
        params={"backward_ns": one.backward_ns, "where": one.where},
    )
