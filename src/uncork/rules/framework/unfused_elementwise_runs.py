"""unfused-elementwise-runs: elementwise operators follow one another, each a call of its own."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.elementwise_runs import LEAST_RUN, ElementwiseRuns
from uncork.measure.host_pieces import where
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.pace import compiles, pace_ns
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

WON_SHARE = 0.8
"""Compiled code still makes some calls, and each run stays one."""


@rule()
def unfused_elementwise_runs(
    runs: Ranks[ElementwiseRuns], ledgers: Ranks[StepLedger], machines: Ranks[Machine], compiled: Ranks[Compiled]
) -> Cost | None:
    """Return the calls' time that fusing each run into one operator would save: its share of all calls."""
    shares = [one.saved_ops / one.all_ops if one.all_ops else 0.0 for one in runs]
    cost = charge(ledgers, [pace_ns(ledger) * share for ledger, share in zip(ledgers, shares, strict=True)])
    if not cost.notable:
        return None
    one = runs[cost.place]
    longest = one.runs[0]
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 4, cost.share * WON_SHARE),
        confidence=sure(ledgers[cost.place], 0.75),
        location=replace(longest.location, rank=cost.rank, op="aten::" + longest.ops[0]),
        evidence=(
            Evidence("fusable_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("run_length", len(longest.ops), "count", LEAST_RUN - 1),
            Evidence("fusable_operators", one.ops, "count"),
        ),
        advice=("compile", "functional")
        if compiles(machines[cost.place]) and not compiled[cost.place].used
        else ("functional",),
        params={
            "ops": " → ".join(longest.ops[:8]) + (" → …" if len(longest.ops) > 8 else ""),
            "times": round(longest.times),
            "saved": round(one.saved_ops),
            "where": where(longest.location) or "aten::" + longest.ops[0],
        },
    )
