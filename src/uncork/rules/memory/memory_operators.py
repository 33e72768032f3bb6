"""memory-operators: on a CPU a good part of the step only copies, joins or fills tensors."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.operators import OperatorTable
from uncork.measure.step_ledger import StepLedger
from uncork.operators import ALLOCATES
from uncork.rules.rule import rule

LEAST_SHARE = 0.1
"""Of the step; the guide this project began with speaks of memory from 30 % on (requirement R3.2)."""
ARTICLE_SHARE = 0.3
LOW, HIGH = 0.2, 0.8
"""Part that goes away: of joins in a loop nearly all, of a copy that somebody needs nothing."""
_ADVICE = {
    "cat": ("join-once", "preallocate"),
    "stack": ("preallocate", "no-copies"),
    "concat": ("join-once", "preallocate"),
    "repeat": ("expand", "no-copies"),
    "tile": ("expand", "no-copies"),
    "pad": ("preallocate", "no-copies"),
    "constant_pad_nd": ("preallocate", "no-copies"),
}
_FILLS = ("fill_", "zero_", "zeros", "ones", "full", "zeros_like", "ones_like", "new_zeros", "new_ones")


@rule()
def memory_operators(operators: Ranks[OperatorTable], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the ledger's time for memory operators on the rank that spends most; devices have a rule of their own."""
    if any(one.on_device for one in ledger) or any(one.unseen_device for one in operators):
        raise MissingEvidence("cpu_work")
    place = max(range(len(ledger)), key=lambda one: ledger[one].share("memop"))
    steps, share = ledger[place], ledger[place].share("memop")
    mine = [one for one in operators[place].operators if one.op_class == "memory" and one.phase != "loading"]
    if share < LEAST_SHARE or not mine:
        return None
    top = max(mine, key=lambda one: one.cpu_self_ns)
    name = top.name.removeprefix("aten::").lstrip("_")
    advice = _ADVICE.get(name, ("reuse-buffers", "no-copies") if name in _FILLS else ("no-copies", "preallocate"))
    if ALLOCATES.match(top.name):
        advice = ("allocate-once", "allocator")
    return Cost(
        ns_per_step=steps.mean_ns("memop"),
        gain=Gain(LOW * share, HIGH * share),
        confidence=0.8,
        location=top.location(operators.numbers[place] if len(operators) > 1 else None),
        evidence=(
            Evidence("memory_operator_share", share, "share", LEAST_SHARE),
            Evidence("memory_operators_against_article", share, "share", ARTICLE_SHARE),
            Evidence("memory_operator_calls", sum(one.calls_per_step for one in mine), "count"),
        ),
        advice=advice,
        params={"op": top.name, "op_ns": top.cpu_self_ns, "calls": round(top.calls_per_step)},
    )
