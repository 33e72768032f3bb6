"""no-overlap: collectives run only while nothing else does, although there is computing to hide them behind."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.matching import match
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.05
"""Of the step: less is not worth a change (TraceLens' agent: exposed communication over 5 %)."""
HIDDEN_SHARE = 0.05
"""Part of the collectives' time that lies beside other work; TraceLens' agent asks for 70 %."""


@rule(hidden_by=("pipeline-bubbles",))
def no_overlap(collectives: Ranks[Collectives], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return what could hide behind computing, on jobs on a device whose collectives hide nothing."""
    step_ns = float(np.mean([one.mean_step_ns for one in ledger]))
    waited = match(collectives).within_steps().waited_ns() if len(collectives) > 1 else np.zeros((1, 0))
    waited_ns = float(waited.mean()) if waited.size else 0.0
    cost_ns = float(np.mean([one.mean_ns("comm") for one in ledger])) - waited_ns
    inside = [one.step >= 0 for one in collectives]
    took = sum(int(one.dur_ns[kept].sum()) for one, kept in zip(collectives, inside, strict=True))
    exposed = sum(int(one.exposed_ns[kept].sum()) for one, kept in zip(collectives, inside, strict=True))
    if not ledger[0].on_device or not took or cost_ns < LEAST_SHARE * step_ns or 1 - exposed / took > HIDDEN_SHARE:
        return None
    compute_ns = float(np.mean([one.mean_ns("gemm", "other_kernel", "bandwidth") for one in ledger]))
    hideable_ns = min(cost_ns, compute_ns)
    if hideable_ns < LEAST_SHARE * step_ns:
        return None
    first = collectives[0]
    op = first.names[int(np.bincount(first.name, first.exposed_ns).argmax())]
    return Cost(
        ns_per_step=round(cost_ns),
        gain=Gain(0.25 * hideable_ns / step_ns, hideable_ns / step_ns),
        confidence=0.8 if len(collectives) > 1 else 0.65,
        location=Location(op=op),
        evidence=(
            Evidence("comm_hidden_share", max(1 - exposed / took, 0.0), "share", HIDDEN_SHARE, "<"),
            Evidence("exposed_comm_share", cost_ns / step_ns, "share", LEAST_SHARE),
            Evidence("compute_ns_per_step", compute_ns, "ns"),
        ),
        params={"op": op, "compute_ns": round(compute_ns), "waited_ns": round(waited_ns)},
    )
