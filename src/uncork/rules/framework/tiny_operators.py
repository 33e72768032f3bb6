"""tiny-operators: a step is made of very many operators that do almost no work each."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.host_causes import TINY_OP_NS
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.dispatch import Dispatch
from uncork.measure.host_pieces import where
from uncork.measure.loops import Loops
from uncork.measure.machine import Machine
from uncork.measure.python_gaps import PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.pace import LOOPED, callers_told, calls_ns, pace_advice, without_loop
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

MANY_CALLS = 10_000
"""The article's sign of too many small operators (requirement R3.5), over the whole recording."""
LEAST_CALLS = 100
"""Per step: fewer are 0.5 to 5 ms of calls, no sea of operators (nearest cases: 5 and 112)."""
MOSTLY_TINY_SHARE = 0.5
"""Where fewer than half of the operators are tiny, their calls are not what the step is made of."""
WON_SHARE = 0.8
"""Compiled code still makes some calls; R5.6 takes a fifth faster as the proof."""
LOOP_WON_SHARES = (0.5, 0.95)
"""A loop over pieces as one operator, as in python-loop-over-tensor (a hand-written LSTM beside torch's: 0.87)."""


@rule(hidden_by=("launch-bound",))
def tiny_operators(
    counts: Ranks[Dispatch],
    ledgers: Ranks[StepLedger],
    *,
    machines: Ranks[Machine],
    compiled: Ranks[Compiled],
    gaps: Ranks[PythonGaps] | None,
    loops: Ranks[Loops] | None,
) -> Cost | None:
    """Return the time that calling tiny operators costs, without a loop over a tensor, which has a rule of its own."""
    shares = [float(count.tiny.sum()) / max(int(count.ops.sum()), 1) for count in counts]
    values: list[float] = [
        calls if share >= MOSTLY_TINY_SHARE and count.tiny.mean() >= LEAST_CALLS else 0
        for calls, count, share in zip(calls_ns(ledgers, gaps), counts, shares, strict=True)
    ]
    if loops:
        values = list(map(without_loop, values, loops, ledgers))
    cost = charge(ledgers, values)
    if not cost.notable:
        return None
    ledger, count = ledgers[cost.place], counts[cost.place]
    most = count.leader
    low, high = LOOP_WON_SHARES if count.turns >= LOOPED else (0.25, WON_SHARE)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * low, cost.share * high),
        confidence=sure(ledger, 0.9 if cost.share >= 0.2 else 0.75),
        location=replace(count.location, rank=cost.rank, op=count.location.op or most.name),
        evidence=(
            Evidence("overhead_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("tiny_calls_per_step", float(count.tiny.mean()), "count", LEAST_CALLS),
            Evidence("tiny_calls", int(count.tiny.sum()), "count", MANY_CALLS),
            Evidence("tiny_calls_share", shares[cost.place], "share", MOSTLY_TINY_SHARE),
            Evidence("most_called_self", most.median_ns, "ns", TINY_OP_NS, "<"),
        ),
        advice=pace_advice(machines[cost.place], compiled=compiled[cost.place].used, turns=count.turns),
        params={
            "calls": round(float(count.tiny.mean())),
            "op": most.name,
            "op_calls": round(most.calls),
            "where": where(count.location) or most.name,
            "callers": callers_told(count.callers) or "@unknown.place",
        },
    )
