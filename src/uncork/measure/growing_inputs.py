"""GrowingInputs: matrix products that get a few more rows at each call, for what the calls before computed already."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, deep_parts, operator_parts
from uncork.records import dataclass

LEAST_LENGTHS = 16
"""Lengths without a gap between them that texts of any length do not have by chance."""
LEAST_IN_EACH_STEP = 8
"""… and that many where every step goes through all of them, as a call of ``generate`` does: eight random lengths of
eight lie side by side once in 400 times, all different, and not again in the next step."""
_PRODUCTS = frozenset({"aten::mm", "aten::addmm"})


@dataclass(frozen=True)
class GrowingInputs(Measurement):
    """Products of one weight with inputs of 16, 17, 18 … rows.

    Args:
        repeated_share: Share of the steps' time in which rows were computed that the call before had computed.
        lengths: Number of different inputs.
        least_lengths: As many make a run of them.
        first_rows: Rows of the shortest.
        last_rows: Rows of the longest.
        more_rows: Rows that each has more than the one before.
        largest: The product that takes most, None where there is none.
    """

    repeated_share: float
    lengths: int
    least_lengths: int
    first_rows: int
    last_rows: int
    more_rows: int
    largest: Operator | None

    @classmethod
    def of(cls, rank: Rank) -> "GrowingInputs":
        """Return the growing products of a rank, in shares of the recording that knows shapes."""
        table = rank.made(OperatorTable)
        apart = rank.deep is not rank.timeline
        parts = deep_parts(rank) if apart else operator_parts(rank)
        if not any(part.shapes for part in parts):
            raise MissingEvidence("shapes")
        step_ns = int(rank.deep.steps.dur_ns.sum()) if apart else table.step_ns
        steps = len(rank.deep.steps) if apart else table.steps
        runs = _runs((part for part in parts if part.name in _PRODUCTS and part.phase == "forward"), steps)
        total = 0.0
        largest: tuple[float, list[Operator]] = (0.0, [])
        for run in runs:
            step = _rows(run[1]) - _rows(run[0])
            repeated = sum(table.weight_ns(part) * (1 - step / _rows(part)) for part in run[1:])
            total += repeated
            largest = max(largest, (repeated, run), key=lambda one: one[0])
        run = largest[1]
        return cls(
            repeated_share=min(total / step_ns, 1.0) if step_ns else 0.0,
            lengths=len(run),
            least_lengths=_least(run, steps),
            first_rows=_rows(run[0]) if run else 0,
            last_rows=_rows(run[-1]) if run else 0,
            more_rows=_rows(run[1]) - _rows(run[0]) if run else 0,
            largest=max(run, key=table.weight_ns, default=None),
        )


def _rows(part: Operator) -> int:
    return int(str(part.sizes["m"]))


def _least(run: list[Operator], steps: int) -> int:
    """Return how many lengths make a run: fewer where each comes in every step, the only one or one of several."""
    return LEAST_IN_EACH_STEP if steps and run and run[0].calls % steps == 0 else LEAST_LENGTHS


def _runs(products: Iterable[Operator], steps: int) -> list[list[Operator]]:
    """Return products of one place and weight with inputs of n, n + d, n + 2 d … rows, equally often, in that order."""
    places: defaultdict[tuple[object, ...], list[Operator]] = defaultdict(list)
    for part in products:
        if {"m", "n", "k"} <= part.sizes.keys():
            places[part.name, part.module, part.place, part.sizes["n"], part.sizes["k"]].append(part)
    found = []
    for run in places.values():
        run.sort(key=_rows)
        more = {_rows(after) - _rows(before) for before, after in pairwise(run)}
        is_even = len({part.calls for part in run}) == 1
        if is_even and len(run) >= _least(run, steps) and len(more) == 1 and more.pop() > 0:
            found.append(run)
    return found
