"""compile-would-pay: much of the step is calling operators, the same ones in every step, and nothing is compiled."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.dispatch import Dispatch
from uncork.measure.loops import Loops
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.pace import compiles, pace_ns, without_loop
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

PAYS_SHARE = 0.2
"""A fifth faster is the article's proof that the framework was the bottleneck (requirements R3.5, R5.6)."""
WON_SHARE = 0.8
"""Guards and graph breaks leave some calls."""


@rule(hidden_by=("launch-bound", "tiny-operators"))
def compile_would_pay(
    counts: Ranks[Dispatch],
    ledgers: Ranks[StepLedger],
    *,
    machines: Ranks[Machine],
    compiled: Ranks[Compiled],
    loops: Ranks[Loops] | None,
) -> Cost | None:
    """Return the head-room of compiling; the time itself is charged to the rules that name the calls."""
    able = [compiles(machine) and not one.used for machine, one in zip(machines, compiled, strict=True)]
    values: list[float] = [pace_ns(ledger) if can else 0 for ledger, can in zip(ledgers, able, strict=True)]
    cost = charge(ledgers, list(map(without_loop, values, loops, ledgers)) if loops else values)
    if cost.share < PAYS_SHARE:
        return None
    count, ledger = counts[cost.place], ledgers[cost.place]
    return Cost(
        ns_per_step=0,
        gain=Gain(cost.share / 4 if count.steady else 0.0, cost.share * WON_SHARE),
        confidence=sure(ledger, 0.8 if count.steady else 0.6),
        location=replace(count.location, rank=cost.rank),
        evidence=(
            Evidence("overhead_share", cost.share, "share", PAYS_SHARE),
            Evidence("compiled_regions", compiled[cost.place].regions, "count", 0, "="),
            Evidence("operators_per_step", float(count.ops.mean()), "count"),
        ),
        advice=("reduce-overhead", "compile") if machines[cost.place].device in ("cuda", "hip") else ("compile",),
        params={"overhead_share": cost.share, "ops": round(float(count.ops.mean()))},
    )
