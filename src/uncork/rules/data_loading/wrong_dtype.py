"""wrong-dtype: batches come out of the loader in double precision and are converted afterwards."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.batch_types import BatchTypes
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.02
"""One ``astype`` in the data set is worth a smaller share than other changes."""


@rule()
def wrong_dtype(types: Ranks[BatchTypes], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time that goes into stacking and converting double-precision batches."""
    cost = charge(ledgers, [one.host_ns for one in types])
    if cost.share < LEAST_SHARE:
        return None
    one = types[cost.place]
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 2, cost.share),
        confidence=sure(ledgers[cost.place], 0.7),
        location=Location(rank=cost.rank, op="aten::stack" if one.joins else "aten::_to_copy"),
        evidence=(
            Evidence("double_share", cost.share, "share", LEAST_SHARE),
            Evidence("double_tensors", one.joins + one.casts, "count", 0),
        ),
        params={"tensors": one.joins + one.casts},
    )
