"""small-collectives: many collectives too small to use the link, each of which costs its start."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.collectives import UNMATCHED, Collectives
from uncork.measure.step_ledger import StepLedger
from uncork.quantiles import median
from uncork.rules.rule import rule

SMALL_BYTES = 1 << 20
"""Under 1 MiB a collective costs its latency; DDP's buckets have 25 MiB (msprof: 1 MiB over RDMA, 16 MiB in a node)."""
MANY_PER_STEP = 16
"""A few small ones per step (a loss, a norm, a flag) are normal."""
LEAST_SHARE = 0.02


@rule()
def small_collectives(collectives: Ranks[Collectives], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the exposed time of small collectives on the rank where it is least: there it is not waiting."""
    if not any((one.bytes > 0).any() for one in collectives):
        raise MissingEvidence("sizes")
    exposed = [
        # Some that run at the same time are exposed at the same time.
        min(int(one.exposed_ns[_small(one)].sum()) / max(len(two.step_ns), 1), two.mean_ns("comm", "comm_wait"))
        for one, two in zip(collectives, ledger, strict=True)
    ]
    place = int(np.argmin(exposed))
    mine, step_ns = collectives[place], ledger[place].mean_step_ns
    small = _small(mine)
    count = int(small.sum()) / max(len(ledger[place].step_ns), 1)
    if count < MANY_PER_STEP or exposed[place] < LEAST_SHARE * step_ns:
        return None
    op = mine.names[int(np.bincount(mine.name[small]).argmax())]
    median_bytes = int(median(mine.bytes[small]))
    share = exposed[place] / step_ns
    return Cost(
        ns_per_step=round(exposed[place]),
        gain=Gain(0.3 * share, 0.9 * share),
        confidence=0.8 if len(collectives) > 1 else 0.65,
        location=Location(op=op),
        evidence=(
            Evidence("small_collectives_per_step", count, "count", MANY_PER_STEP),
            Evidence("small_collective_bytes", median_bytes, "bytes", SMALL_BYTES, "<"),
        ),
        params={"op": op, "count": round(count), "median_bytes": median_bytes},
    )


def _small(one: Collectives) -> np.typing.NDArray[np.bool_]:
    """Return which are small; what stages of a pipeline send each other cannot be put together."""
    sent = np.array([name in UNMATCHED for name in one.names], bool)[one.name]
    small: np.typing.NDArray[np.bool_] = (one.bytes > 0) & (one.bytes < SMALL_BYTES) & (one.step >= 0) & ~sent
    return small
