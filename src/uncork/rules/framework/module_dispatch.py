"""module-dispatch: the machinery of nn.Module (wrappers, hooks) takes a large part of the step."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.machine import Machine
from uncork.measure.python_gaps import PythonGaps
from uncork.measure.step_ledger import FRAME_CAUSES, StepLedger
from uncork.rules.pace import compiles
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.1
"""Recording stacks slows exactly these calls down, so a smaller share may be the recording's own."""


@rule()
def module_dispatch(gaps: Ranks[PythonGaps], ledgers: Ranks[StepLedger], machines: Ranks[Machine]) -> Cost | None:
    """Return the time of calls through nn.Module in which nothing works."""
    values = [
        gap.part_ns("module", ledger.mean_ns("py_short", *FRAME_CAUSES, "unexplained"), ledger.mean_step_ns)
        for ledger, gap in zip(ledgers, gaps, strict=True)
    ]
    cost = charge(ledgers, values)
    top = gaps[cost.place].top("module")
    if cost.share < LEAST_SHARE or top is None:
        return None
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.5),
        location=replace(top.location, rank=cost.rank),
        evidence=(Evidence("module_share", cost.share, "share", LEAST_SHARE),),
        advice=("compile", "flatten", "hooks") if compiles(machines[cost.place]) else ("flatten", "hooks"),
        params={"where": where(top.location) or "nn.Module.__call__"},
    )
