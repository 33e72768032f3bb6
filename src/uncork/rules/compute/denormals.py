"""denormals: arithmetic on the CPU takes many times as long per element where numbers have become tiny."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.slow_elements import SLOW_ELEMENT_NS, SlowElements
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

SLOW_RATIO = 10.0
"""Intel's optimization manual: some 150 cycles for an operation on denormals instead of about one per element; tensors
that do not fit into a cache, or are read across their rows, stay below."""


@rule()
def denormals(slows: Ranks[SlowElements], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time that the slow place takes beyond the same arithmetic elsewhere."""
    values = [one.ns * (1 - 1 / one.ratio) if one.ratio >= SLOW_RATIO else 0.0 for one in slows]
    cost = charge(ledgers, values)
    one = slows[cost.place]
    if not cost.notable or one.slowest is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        # Values are not recorded: only the time speaks.
        confidence=sure(ledgers[cost.place], 0.5),
        location=one.slowest.location(cost.rank),
        evidence=(
            Evidence("slow_arithmetic_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("element_ratio", one.ratio, "ratio", SLOW_RATIO),
            Evidence("element_time", one.element_ns, "ns", SLOW_ELEMENT_NS),
        ),
        params={"op": one.slowest.name, "ratio": f"{one.ratio:.0f}", "where": one.slowest.where},
    )
