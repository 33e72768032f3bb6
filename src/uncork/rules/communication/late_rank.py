"""late-rank: one or a few ranks reach the collectives late, and all others wait inside them."""

from collections.abc import Sequence

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.matching import match
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import LATE_OF_STEP, lateness
from uncork.quantiles import median
from uncork.rules.rule import rule
from uncork.rules.worth import sure, sure_of_late

_ADVICE = {
    "data_loading": "balance-data",
    "py_prep": "balance-data",
    "gc": "freeze-gc",
    "gemm": "balance-work",
    "bandwidth": "balance-work",
    "other_kernel": "balance-work",
    "compute": "balance-work",
}


@rule()
def late_rank(collectives: Ranks[Collectives], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the time the others wait, placed on the rank that causes most of it."""
    if len(collectives) < 2:
        raise MissingEvidence("ranks")
    step_ns = float(np.mean([one.waited_for_ns for one in ledger]))
    late = lateness(match(collectives), collectives.numbers, step_ns)
    if not late.ranks:
        return None
    cause, excess_ns = _what_takes_longer(ledger, late.ranks)
    number = late.ranks[0]
    place = collectives.numbers.index(number)
    # In the unit of all shares, as the verdict counts it: steps without what stood still in them.
    waited_ns = round(late.wait_share * float(np.mean([one.mean_step_ns for one in ledger])))
    return Cost(
        ns_per_step=waited_ns,
        gain=Gain(0.5 * late.wait_share, late.wait_share),
        confidence=sure(ledger[place], 0.85 * sure_of_late(late, cause, excess_ns / max(waited_ns, 1))),
        location=Location(rank=number),
        evidence=(
            Evidence("waiting_share", late.wait_share, "share", LATE_OF_STEP),
            Evidence("caused_share", float(late.caused_share[place]), "share", 1.0 / len(collectives)),
            Evidence("late_excess_ns", excess_ns, "ns"),
        ),
        advice=tuple(dict.fromkeys((_ADVICE.get(cause, "look-at-rank"), "look-at-rank"))),
        params={
            "number": str(number),
            "late": ", ".join(str(one) for one in late.ranks),
            "caused_share": float(sum(late.caused_share[collectives.numbers.index(one)] for one in late.ranks)),
            "cause": f"@cause.{cause}",
            "excess_ns": excess_ns,
            "steps": late.steps,
            "late_steps": late.late_steps,
        },
    )


def _what_takes_longer(ledger: Ranks[StepLedger], late: Sequence[int]) -> tuple[str, int]:
    """Return the cause on which the late ranks spend most beyond the median of the others, and how much."""
    causes = [cause for cause in ledger[0].causes if cause not in ("comm", "comm_wait", "first_use")]
    mine = [one for one, number in zip(ledger, ledger.numbers, strict=True) if number in late]
    others = [one for one, number in zip(ledger, ledger.numbers, strict=True) if number not in late] or list(ledger)
    excess = {
        cause: median([one.mean_ns(cause) for one in mine]) - median([one.mean_ns(cause) for one in others])
        for cause in causes
    }
    cause = max(excess, key=excess.__getitem__)
    return cause, max(round(excess[cause]), 0)
