"""pipeline-bubbles: a stage of a pipeline has nothing to do until its neighbour has sent or taken something."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.collectives import UNMATCHED, Collectives
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.1
"""Bubbles are (stages - 1) / (micro-batches + stages - 1) of a step (GPipe, 1F1B): a tenth
is a pipeline in good order."""
MOSTLY_SHARE = 0.5
"""Of the exposed communication: else other collectives are what the step waits for."""
WON_SHARE = 0.75
"""Four times as many micro-batches; what is left is one stage's start."""


@rule(hidden_by=("stage-waits",))
def pipeline_bubbles(collectives: Ranks[Collectives], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time in sends and receives with nothing beside them, mean over the ranks."""
    alone = [
        # Several that are under way at the same time are exposed at the same time.
        min(_exposed_ns(one, sends=True) / max(len(two.step_ns), 1), two.mean_ns("comm", "comm_wait"))
        for one, two in zip(collectives, ledgers, strict=True)
    ]
    cost = charge(ledgers, alone)
    sent, rest = (sum(_exposed_ns(one, sends=sends) for one in collectives) for sends in (True, False))
    mostly = sent / max(sent + rest, 1)
    if cost.share < LEAST_SHARE or mostly < MOSTLY_SHARE:
        return None
    mine = collectives[cost.place]
    count = int(_sends(mine).sum()) / max(len(ledgers[cost.place].step_ns), 1)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share * WON_SHARE),
        # One rank alone does not show whether it waits for its neighbour or for the bytes.
        confidence=sure(ledgers[cost.place], 0.75 if len(collectives) > 1 else 0.6),
        location=Location(rank=cost.rank, op="send_recv"),
        evidence=(
            Evidence("sends_exposed_share", cost.share, "share", LEAST_SHARE),
            Evidence("sends_of_comm_share", mostly, "share", MOSTLY_SHARE),
            Evidence("sends_per_step", count, "count"),
        ),
        params={"sends": round(count)},
    )


def _sends(one: Collectives) -> np.typing.NDArray[np.bool_]:
    named: np.typing.NDArray[np.bool_] = np.array([name in UNMATCHED for name in one.names], bool)[one.name]
    return named & (one.step >= 0)


def _exposed_ns(one: Collectives, *, sends: bool) -> int:
    """Return the exposed time of sends and receives in the steps, or of everything else."""
    mine = _sends(one)
    return int(one.exposed_ns[mine if sends else ~mine & (one.step >= 0)].sum())
