"""straggling-worker: one loader worker is slower than the others, and batches are delivered in order."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.step_ledger import StepLedger
from uncork.quantiles import median
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

SLOW_RATIO = 1.5
"""A worker this much slower than the median of all holds up the queue; below, items simply differ."""
LEAST_BATCHES = 3
"""Fewer batches per worker are no sample."""


@rule()
def straggling_worker(stages: Ranks[LoaderStages], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the part of the wait for data that comes from one slow worker."""
    ratios = [_ratio(stage) for stage in stages]
    values = [
        ledger.mean_ns("data_loading") * (1 - 1 / ratio) if ratio >= SLOW_RATIO else 0.0
        for ledger, ratio in zip(ledgers, ratios, strict=True)
    ]
    cost = charge(ledgers, values)
    if not cost.notable:
        return None
    slowest = max(stages[cost.place].makers, key=lambda maker: maker.busy_ns)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.75),
        location=Location(rank=cost.rank, op=f"DataLoader worker {slowest.number}"),
        evidence=(
            Evidence("loader_wait_share", ledgers[cost.place].share("data_loading"), "share", NOTABLE_SHARE),
            Evidence("worker_ratio", ratios[cost.place], "ratio", SLOW_RATIO),
            Evidence("worker_batch", slowest.busy_ns, "ns"),
        ),
        params={"worker": str(slowest.number), "batch_ns": slowest.busy_ns, "ratio": f"{ratios[cost.place]:.1f}"},
    )


def _ratio(stage: LoaderStages) -> float:
    """Return how much slower the slowest worker is than the median of all; 1 where there is nothing to compare."""
    busy = [maker.busy_ns for maker in stage.makers if maker.number >= 0 and maker.batches >= LEAST_BATCHES]
    middle = median(busy) if len(busy) > 1 else 0
    return max(busy) / middle if middle else 1.0
