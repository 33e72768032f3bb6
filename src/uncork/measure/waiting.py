"""Waiting for late ranks: who causes it, how much of a step it is, and its place in the ledger."""

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np
import numpy.typing as npt

from uncork.measure import Measured, Ranks
from uncork.measure.collectives import Collectives
from uncork.measure.matching import Matched, match
from uncork.measure.step_ledger import StepLedger
from uncork.quantiles import median
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]

LATE_OF_ALL_WAITING = 0.25
"""A late rank causes at least this share of all waiting."""
LATE_OVER_CHANCE = 1.5
"""… and at least this multiple of its equal part 1/n."""
TOGETHER_SHARE = 0.1
"""Ranks that wait less than this part of the longest wait arrive together with the last."""
LATE_OF_STEP = 0.1
"""Less waiting than this share of the median step is noise between ranks (labelled traces: 0.08 on a
noisy machine without a straggler, 0.2–0.7 with one)."""
EXPLAINS_WAIT = 0.25
"""What late ranks do more of than others must be at least this part of the waiting to be its reason (labelled traces:
0.4 with two late ranks that take turns, 0.9 with one)."""


@dataclass(frozen=True, eq=False)
class Lateness:
    """Who the others wait for.

    Args:
        ranks: Numbers of the late ranks, the worst first.
        wait_share: Share of the median step that a rank which is not late spends waiting.
        caused_share: Share of all waiting that each rank causes, float64 (ranks,).
        waited_ns: How long each rank waits per step, mean, int64 (ranks,).
        steps: Steps with collectives; one where steps are not marked.
        late_steps: Those in which one of the late ranks causes most of the waiting.
    """

    ranks: tuple[int, ...]
    wait_share: float
    caused_share: npt.NDArray[np.float64]
    waited_ns: IntArray
    steps: int = 1
    late_steps: int = 1

    @property
    def chance(self) -> float:
        """Return how likely some ranks, as many as are late, are last so often where all are alike (0: one step only).

        Each step is a draw: the binomial tail for one choice of ranks, times the number of choices.
        """
        ranks, late = len(self.caused_share), len(self.ranks)
        if self.steps < 2 or not late or late == ranks:
            return 0.0
        each = late / ranks
        tail = sum(
            comb(self.steps, hits) * each**hits * (1 - each) ** (self.steps - hits)
            for hits in range(self.late_steps, self.steps + 1)
        )
        return min(1.0, comb(ranks, late) * tail)


def lateness(matched: Matched, numbers: Sequence[int], step_ns: float) -> Lateness:
    """Return the ranks that the others wait for, if the waiting is worth it and theirs in most steps.

    Args:
        matched: Collectives side by side.
        numbers: Rank numbers of its columns.
        step_ns: Mean step time.
    """
    none = np.zeros(len(numbers))
    inside = matched.within_steps()
    if len(numbers) < 2 or not len(inside) or step_ns <= 0:
        return Lateness((), 0.0, none, none.astype(np.int64))
    by_rank = _caused(inside)
    caused = by_rank.sum(axis=0)
    share = caused / max(float(caused.sum()), 1.0)
    late = (share >= LATE_OF_ALL_WAITING) & (share >= LATE_OVER_CHANCE / len(numbers))
    per_step = _per_step(inside.step, by_rank)
    # More than its equal part of the waiting, in more than half of the steps.
    late &= (per_step > per_step.mean(axis=1, keepdims=True)).mean(axis=0) > 0.5
    waited = inside.waited_ns()
    others = ~late if late.any() and not late.all() else np.ones(len(numbers), bool)
    # The mean holds odd steps, too, which the step time leaves out: of few steps it may be more than a step.
    wait_share = min(median(waited[others].mean(axis=0)) / step_ns, 1.0)
    order = [int(place) for place in np.argsort(-share) if late[place]] if wait_share >= LATE_OF_STEP else []
    return Lateness(
        ranks=tuple(numbers[place] for place in order),
        wait_share=wait_share,
        caused_share=share,
        waited_ns=waited.mean(axis=1).astype(np.int64),
        steps=len(per_step),
        late_steps=int(np.isin(per_step.argmax(axis=1), order).sum()),
    )


def _caused(matched: Matched) -> npt.NDArray[np.float64]:
    """Return how much of all waiting in each collective each rank causes, float64 (matched, ranks).

    Ranks that arrive together with the last one cause it in equal parts: hurrying one of them would help nobody.
    """
    wait = matched.wait_ns
    last = (matched.dur_ns >= 0) & (wait <= TOGETHER_SHARE * wait.max(axis=1, keepdims=True))
    parts: npt.NDArray[np.float64] = wait.sum(axis=1, keepdims=True) * last / np.maximum(last.sum(axis=1), 1)[:, None]
    return parts


def _per_step(step: IntArray, caused: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how much of the waiting in each step each rank causes, float64 (steps, ranks)."""
    steps, back = np.unique(step, return_inverse=True)
    per_step = np.zeros((len(steps), caused.shape[1]))
    np.add.at(per_step, back, caused)
    return per_step


def with_waits(measured: Sequence[Measured], numbers: Sequence[int]) -> list[Measured]:
    """Return the measurements of all ranks with the waiting taken out of ``comm`` and into ``comm_wait``.

    Args:
        measured: The measurements of each rank.
        numbers: The rank each belongs to.
    """
    places = [place for place, one in enumerate(measured) if isinstance(one.get(Collectives), Collectives)]
    values = [one for place in places if isinstance(one := measured[place][Collectives], Collectives)]
    done: list[Measured] = list(measured)
    if len(values) < 2:
        return done
    matched = match(Ranks(values, [numbers[place] for place in places]))
    waited = matched.waited_ns()
    for column, place in enumerate(places):
        ledger = measured[place].get(StepLedger)
        if isinstance(ledger, StepLedger) and "comm" in ledger.causes and len(matched):
            apart = _apart(ledger, matched.steps - values[column].first_step, waited[column])
            done[place] = {**measured[place], StepLedger: apart}
    return done


def _apart(ledger: StepLedger, steps: IntArray, waited_ns: IntArray) -> StepLedger:
    """Return a ledger with each step's wait apart from its exposed communication."""
    row = ledger.causes.index("comm")
    wait = np.zeros(ledger.ns.shape[1], np.int64)
    inside = (steps >= 0) & (steps < len(wait))
    wait[steps[inside]] = waited_ns[inside]
    wait = np.minimum(wait, ledger.ns[row])
    share = wait.sum() / max(int(ledger.ns[row].sum()), 1)
    return replace(
        ledger,
        causes=(*ledger.causes[: row + 1], "comm_wait", *ledger.causes[row + 1 :]),
        ns=_split(ledger.ns, row, wait),
        part_ns=None
        if ledger.part_ns is None
        else _split(ledger.part_ns, row, (ledger.part_ns[row] * share).astype(np.int64)),
    )


def _split(ns: IntArray, row: int, taken: IntArray) -> IntArray:
    """Return times with a part of one row moved to a new row behind it."""
    split = np.insert(ns, row + 1, taken, axis=0)
    split[row] -= taken
    return split
