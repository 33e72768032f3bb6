"""dataparallel-not-ddp: one process drives several devices, copying the model to them in every step."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.step_ledger import StepLedger
from uncork.measure.wrappers import DATA_PARALLEL_FORWARD, Wrappers
from uncork.rules.rule import rule


@rule()
def dataparallel_not_ddp(wrappers: Ranks[Wrappers], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the copies between devices and the idle time of dispatching, where DataParallel's forward pass runs."""
    mine, steps = wrappers[0], ledger[0]
    if not mine.data_parallel_forwards or mine.devices < 2:
        return None
    cost_ns = steps.mean_ns("comm", "dispatch", "py_short")
    share = cost_ns / steps.mean_step_ns if steps.mean_step_ns else 0.0
    return Cost(
        ns_per_step=cost_ns,
        gain=Gain(0.25 * share, 0.9 * share),
        confidence=0.9,
        location=Location(op=DATA_PARALLEL_FORWARD),
        evidence=(Evidence("data_parallel_devices", mine.devices, "count", 1),),
        params={"devices": mine.devices},
    )
