"""quadratic-attention: long sequences make attention, which grows with the square of their length, a large part."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.attention import Attention
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.2
"""A fifth of the step: below it the rest of the network is the larger target."""
LEAST_LENGTH = 1024
"""Where attention's products overtake the projections of a usual width: 4 × length × width against 8 × width²."""
WON_SHARES = (0.25, 0.75)
"""Half the length is a quarter of the pairs; a quarter less is what leaving out padding usually gives."""


@rule(hidden_by=("unfused-attention",))
def quadratic_attention(attentions: Ranks[Attention], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of attention over long sequences, fused or not."""
    cost = charge(ledgers, [one.fused_ns + one.unfused_ns if one.length >= LEAST_LENGTH else 0 for one in attentions])
    attention, ledger = attentions[cost.place], ledgers[cost.place]
    if cost.share < LEAST_SHARE or attention.largest is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledger, 0.7),
        location=attention.largest.location(cost.rank),
        evidence=(
            Evidence("attention_share", cost.share, "share", LEAST_SHARE),
            Evidence("sequence_length", float(attention.length), "count", LEAST_LENGTH),
        ),
        params={"length": attention.length, "rows": attention.query_rows, "where": attention.largest.where},
    )
