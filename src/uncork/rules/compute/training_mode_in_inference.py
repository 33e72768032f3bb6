"""training-mode-in-inference: a program that only runs forward does dropout and batch statistics."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.inference import Inference
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.01
"""Worth saying even where it is cheap: the results are wrong as well."""
NORM_WON = (0.2, 0.7)
"""Part of a batch norm's time that goes without statistics; folded into the convolution all of it."""


@rule()
def training_mode_in_inference(inferences: Ranks[Inference], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of dropout and batch statistics where nothing is trained."""
    cost = charge(
        ledgers,
        [one.dropout_ns + one.norm_ns if one.forward_only and one.training is not False else 0 for one in inferences],
    )
    one, ledger = inferences[cost.place], ledgers[cost.place]
    if cost.share < LEAST_SHARE or one.largest is None:
        return None
    dropout = cost.share * one.dropout_ns / max(one.dropout_ns + one.norm_ns, 1)
    norm = cost.share - dropout
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(dropout + norm * NORM_WON[0], dropout + norm * NORM_WON[1]),
        # Only the forward pass of a training program may have been recorded.
        confidence=sure(ledger, 0.9 if one.training else 0.6),
        location=one.largest.location(cost.rank),
        evidence=(
            Evidence("dropout_share", dropout, "share"),
            Evidence("batch_statistics_share", norm, "share"),
            Evidence("backward_ops", 0.0, "count", 0.0, "="),
        ),
        advice=("eval", "no-grad") if one.builds_graph else ("eval",),
        params={"dropout_ns": one.dropout_ns, "norm_ns": one.norm_ns, "where": one.largest.where},
    )
