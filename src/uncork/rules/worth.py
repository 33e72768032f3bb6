"""What a cause is worth: its time per step over the ranks, whose it is, and how sure a rule can be."""

from collections.abc import Sequence

from uncork.measure import Ranks
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import EXPLAINS_WAIT, Lateness
from uncork.records import dataclass

NOTABLE_SHARE = 0.05
"""Less of the step is not worth a change; the grade below which two vendors' tools call a job not input-bound."""
_STANDS_OUT = 1.5
"""A rank whose time is this many times the median's is the one to look at: the others wait for it."""

_NO_REASON = ("unexplained", "unrecorded", "stall")
_LEAST_SURE = 0.25
_UNEXPLAINED = 0.4
"""A rank of which nothing recorded takes longer waited for its turn on a core, most likely: the next run names another
(balanced ranks on a busy machine: 3 of 3 steps, and 2 of 3 with the other rank last in the third)."""


@dataclass(frozen=True)
class Charge:
    """Time that goes to one cause.

    Args:
        ns: Per step: the mean over ranks, or the one rank's that stands out.
        share: Of the step.
        place: Place of the rank that has most of it.
        rank: Its number where it stands out, else None.
    """

    ns: int
    share: float
    place: int
    rank: int | None

    @property
    def notable(self) -> bool:
        """Return whether it is worth a finding."""
        return self.share >= NOTABLE_SHARE


def charge(ledgers: Ranks[StepLedger], values_ns: Sequence[float]) -> Charge:
    """Return what a cause costs, given its time per step on each rank.

    Args:
        ledgers: The ledgers of the same ranks.
        values_ns: Time per step on each; no more than the step counts.
    """
    steps = [ledger.mean_step_ns for ledger in ledgers]
    values = [min(float(value), float(step)) for value, step in zip(values_ns, steps, strict=True)]
    place = max(range(len(values)), key=lambda index: values[index])
    middle = sorted(values)[(len(values) - 1) // 2]
    if len(values) > 1 and values[place] > _STANDS_OUT * middle and values[place] >= NOTABLE_SHARE * steps[place]:
        value, step, rank = values[place], steps[place], ledgers.numbers[place]
    else:
        value, step, rank = sum(values) / len(values), sum(steps) // len(steps), None
    return Charge(int(value), min(value / step, 1.0) if step else 0.0, place, rank)


def charge_causes(ledgers: Ranks[StepLedger], *causes: str) -> Charge:
    """Return what some causes of the ledger cost together."""
    return charge(ledgers, [ledger.mean_ns(*causes) for ledger in ledgers])


def sure(ledger: StepLedger, confidence: float) -> float:
    """Return a confidence, less where a single step was seen."""
    return confidence if len(ledger.step_ns) > 1 else confidence * 0.85


def sure_of_late(late: Lateness, cause: str, excess_share: float) -> float:
    """Return how sure it is that some ranks are the late ones, 0 to 1: chance, and whether anything holds them up.

    Args:
        late: Who is late.
        cause: What they spend more time on than the others.
        excess_share: How much more, of the time that the others wait.
    """
    explained = cause not in _NO_REASON and excess_share >= EXPLAINS_WAIT
    return max(_LEAST_SURE, 1 - late.chance) * (1.0 if explained else _UNEXPLAINED)
