"""bandwidth-bound-operators: on the CPU a good part of the step goes over large tensors, once for each operator."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.host_bandwidth import HostBandwidth
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.rules.pace import compiles
from uncork.rules.rule import rule
from uncork.rules.worth import charge_causes, sure

LEAST_SHARE = 0.1
"""Of the step: below it other things are worth more."""
LEAST_CALLS = 5
"""Fewer passes over a step's tensors are hardly to be joined."""
WON_SHARES = (0.1, 0.8)
"""Part that fewer passes give back: sums, and what backward keeps, stay (measured on the CPU: 0.88 of a chain of six
operators, in place of new memory for each)."""


@rule(hidden_by=("dense-table-gradient",))
def bandwidth_bound_operators(
    bound: Ranks[HostBandwidth], ledgers: Ranks[StepLedger], machines: Ranks[Machine], compiled: Ranks[Compiled] | None
) -> Cost | None:
    """Return the ledger's time for operators that mostly read and write large tensors on the CPU."""
    cost = charge_causes(ledgers, "bandwidth")
    one = bound[cost.place]
    if cost.share < LEAST_SHARE or one.calls < LEAST_CALLS or one.largest is None:
        return None
    able = compiles(machines[cost.place]) and not (compiled and compiled[cost.place].used)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledgers[cost.place], 0.75),
        location=one.largest.location(cost.rank),
        evidence=(
            Evidence("bandwidth_operator_share", cost.share, "share", LEAST_SHARE),
            Evidence("bandwidth_operator_calls", one.calls, "count", LEAST_CALLS - 1),
            Evidence("bandwidth_moved", float(one.moved_bytes), "bytes"),
        ),
        advice=("compile", "fewer-passes", "in-place") if able else ("fewer-passes", "in-place"),
        params={
            "calls": round(one.calls),
            "moved_bytes": one.moved_bytes,
            "op": one.largest.name,
            "where": one.largest.where,
        },
    )
