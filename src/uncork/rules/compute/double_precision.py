"""double-precision: much of the computing is done in doubles, which few models need."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.doubles import Doubles
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.1
"""A loss or a metric in doubles is somebody's care, and costs less."""
COMPUTING = ("gemm", "other_kernel", "compute", "bandwidth")
"""Causes of the ledger that shorter numbers shorten."""
WON_SHARES = (0.25, 0.5)
"""Half the bits are half the bytes and twice the numbers per instruction (measured on the CPU: 0.55 of the step); a
device without units for doubles wins far more."""


@rule()
def double_precision(doubles: Ranks[Doubles], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of everything that computes in double precision."""
    values = [one.share * ledger.mean_ns(*COMPUTING) for one, ledger in zip(doubles, ledgers, strict=True)]
    cost = charge(ledgers, values)
    one = doubles[cost.place]
    if cost.share < LEAST_SHARE or one.largest is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledgers[cost.place], 0.85),
        location=one.largest.location(cost.rank),
        evidence=(
            Evidence("double_compute_share", cost.share, "share", LEAST_SHARE),
            Evidence("double_calls", one.calls, "count"),
        ),
        params={"calls": one.calls, "op": one.largest.name, "where": one.largest.where},
    )
