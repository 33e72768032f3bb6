"""created-on-cpu: tensors are filled on the CPU and copied, though the device could fill them itself."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.created_on_host import CreatedOnHost
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.01
"""It is one argument to change, so little is worth it."""


@rule()
def created_on_cpu(created: Ranks[CreatedOnHost], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the time of creating over an idle device and of the copies, on the rank where it is longest."""
    place = max(range(len(created)), key=lambda one: _cost_ns(created[one]))
    mine, step_ns = created[place], ledger[place].mean_step_ns
    cost_ns = _cost_ns(mine)
    if not step_ns or cost_ns < LEAST_SHARE * step_ns:
        return None
    share = min(cost_ns / step_ns, 1.0)
    return Cost(
        ns_per_step=cost_ns,
        gain=Gain(0.5 * share, 0.95 * share),
        confidence=0.8,
        location=replace(mine.location, rank=created.numbers[place] if len(created) > 1 else None),
        evidence=(
            Evidence("created_share", share, "share", LEAST_SHARE),
            Evidence("created_per_step", mine.per_step, "count"),
        ),
        params={
            "tensors": mine.per_step,
            "op": mine.location.op or "a creation",
            "idle_ns": mine.idle_ns_per_step,
            "copy_ns": mine.copy_ns_per_step,
        },
    )


def _cost_ns(created: CreatedOnHost) -> int:
    return created.idle_ns_per_step + created.copy_ns_per_step
