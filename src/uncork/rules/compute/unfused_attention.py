"""unfused-attention: attention in separate operators, which write and read the whole matrix of scores several times."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.attention import Attention
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

SCORES_WON = (0.5, 1.0)
PRODUCTS_WON = (0.0, 0.5)
"""Parts of the time that fused attention saves: it never writes the scores, and keeps the products on chip
(Dao et al., FlashAttention: 2 to 4 × over attention in parts)."""
LEAST_LENGTH = 128
"""Below it the matrix of scores is no larger than queries and keys of usual heads (64 to 128 wide): little to save."""
FUSED_SINCE = (2, 0)
"""``scaled_dot_product_attention`` came with PyTorch 2.0."""


@rule()
def unfused_attention(
    attentions: Ranks[Attention], ledgers: Ranks[StepLedger], machines: Ranks[Machine]
) -> Cost | None:
    """Return the time of attention in parts."""
    cost = charge(ledgers, [_unfused_ns(one) for one in attentions])
    attention, ledger = attentions[cost.place], ledgers[cost.place]
    if not cost.notable or attention.largest is None or not attention.unfused_ns:
        return None
    scores = cost.share * attention.score_ns / attention.unfused_ns
    products = cost.share - scores
    torch = machines[cost.place].torch
    old = torch is not None and torch < FUSED_SINCE
    form = "fell_back" if attention.fell_back else "by_hand"
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(
            scores * SCORES_WON[0] + products * PRODUCTS_WON[0], scores * SCORES_WON[1] + products * PRODUCTS_WON[1]
        ),
        confidence=sure(ledger, 0.9),
        location=attention.largest.location(cost.rank),
        evidence=(
            Evidence("unfused_attention_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("score_share", scores, "share"),
            Evidence("score_size", float(attention.score_bytes), "bytes"),
            Evidence("sequence_length", float(attention.length), "count"),
        ),
        advice=("fallback", "reason") if attention.fell_back else ("update", "sdpa") if old else ("sdpa", "library"),
        params={
            "length": attention.length,
            "score_bytes": attention.score_bytes,
            "score_ns": attention.score_ns,
            "where": attention.largest.where,
            "form": f"@attention.{form}",
            "cause": f"@attention.{form}.because",
        },
    )


def _unfused_ns(attention: Attention) -> int:
    """Return the time of attention in parts; none where the sequences are known to be short."""
    return 0 if 0 < attention.length < LEAST_LENGTH else attention.unfused_ns
