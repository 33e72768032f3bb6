"""autocast-recast: converting inputs and weights for autocast takes a large part of the step."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.casts import Casts
from uncork.measure.host_pieces import where
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure


@rule()
def autocast_recast(casts: Ranks[Casts], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of conversions inside operators that do not convert by themselves."""
    values = [
        one.device_ns + one.idle_ns if ledger.on_device else one.host_ns
        for one, ledger in zip(casts, ledgers, strict=True)
    ]
    cost = charge(ledgers, values)
    if not cost.notable:
        return None
    one = casts[cost.place]
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.75),
        location=replace(one.location, rank=cost.rank, op=one.op),
        evidence=(
            Evidence("casts_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("casts_per_step", one.count, "count"),
        ),
        params={"casts": round(one.count), "op": one.op, "where": where(one.location) or one.op},
    )
