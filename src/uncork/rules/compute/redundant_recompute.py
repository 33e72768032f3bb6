"""redundant-recompute: activation checkpointing computes the forward pass again although memory is left."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.recompute import Recompute
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

MOST_USED_SHARE = 0.6
"""Share of the device's memory in use below which some checkpoints can go: activations of one more pass must fit."""


@rule()
def redundant_recompute(recomputes: Ranks[Recompute], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of recomputation where memory is left."""
    cost = charge(ledgers, [one.recompute_ns for one in recomputes])
    one, ledger = recomputes[cost.place], ledgers[cost.place]
    if not cost.notable or one.largest is None:
        return None
    if one.peak_bytes is None or not one.capacity_bytes:
        raise MissingEvidence("memory")
    held = [each.peak_bytes or 0 for each in recomputes]
    # Ranks have a device each; where they share the host's memory, none is told from another's host.
    used = min((max(held) if one.on_device else sum(held)) / one.capacity_bytes, 1.0)
    if used >= MOST_USED_SHARE:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * 0.25, cost.share),
        confidence=sure(ledger, 0.75),
        location=one.largest.location(cost.rank),
        evidence=(
            Evidence("recompute_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("memory_used_share", used, "share", MOST_USED_SHARE, "<"),
        ),
        params={
            "used_share": used,
            "free_bytes": int(one.capacity_bytes * (1 - used)),
            "where": one.largest.where,
            "op": one.largest.name,
        },
    )
