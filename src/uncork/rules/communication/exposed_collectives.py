"""exposed-collectives: moving bytes between ranks takes time in which the device computes nothing."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.matching import match
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.05
"""TraceLens' agent speaks of exposed communication from 5 % of the device's time on."""
ARTICLE_SHARE = 0.4
"""The guide this project began with calls a job communication-bound from 40 % on (requirement R3.4)."""
HALF_BYTES = 0.5
"""Gradients in bf16 are half as large."""

_ADVICE = {
    "all_to_all": ("exchange-ahead",),
    "broadcast": ("no-buffers", "overlap"),
    "all_gather": ("overlap", "less-often"),
    "reduce_scatter": ("overlap", "less-often"),
}
"""All others are taken for reductions of gradients."""
_REDUCTIONS = ("overlap", "fewer-bytes", "less-often", "shard")


@rule(hidden_by=("no-overlap", "pipeline-bubbles"))
def exposed_collectives(collectives: Ranks[Collectives], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the exposed time of collectives without the waiting for other ranks, mean over ranks."""
    step_ns = float(np.mean([one.mean_step_ns for one in ledger]))
    exposed_ns = float(np.mean([one.mean_ns("comm") for one in ledger]))
    waited = match(collectives).within_steps().waited_ns() if len(collectives) > 1 else np.zeros((1, 0))
    waited_ns = float(waited.mean()) if waited.size else 0.0
    cost_ns = max(exposed_ns - waited_ns, 0.0)
    if not step_ns or cost_ns < LEAST_SHARE * step_ns:
        return None
    compute_ns = float(
        np.mean([one.mean_ns("gemm", "other_kernel", "bandwidth", "compute", "memop") for one in ledger])
    )
    high = max(min(cost_ns, compute_ns), HALF_BYTES * cost_ns) / step_ns
    first = collectives[0]
    by_name = np.bincount(first.name, first.exposed_ns, minlength=len(first.names))
    op = first.names[int(by_name.argmax())]
    moved = first.bytes[(first.bytes > 0) & (first.step >= 0)]
    steps = max(len(ledger[0].step_ns), 1)
    return Cost(
        ns_per_step=round(cost_ns),
        gain=Gain(0.25 * high, high),
        # With one rank waiting cannot be told from moving bytes.
        confidence=0.85 if len(collectives) > 1 else 0.7,
        location=Location(op=op),
        evidence=(
            Evidence("exposed_comm_share", cost_ns / step_ns, "share", LEAST_SHARE),
            Evidence("comm_share", (exposed_ns - waited_ns) / step_ns, "share", ARTICLE_SHARE),
            Evidence("collectives_per_step", int((first.step >= 0).sum()) / steps, "count"),
            *((Evidence("comm_bytes_per_step", int(moved.sum()) / steps, "bytes"),) if len(moved) else ()),
        ),
        advice=_ADVICE.get(op, _REDUCTIONS),
        params={
            "op": op,
            "collectives": round(int((first.step >= 0).sum()) / steps),
            "waited_ns": round(waited_ns),
            "ranks": len(collectives),
        },
    )
