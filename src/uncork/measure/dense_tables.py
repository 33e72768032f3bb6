"""DenseTables: tables of which a step uses few rows, while their gradient and update go over all of them."""

import json
import re
from math import prod

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass

GRADIENTS = frozenset({"aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward"})
"""Their first inputs are the gradient of the rows that were taken out, and which rows those are."""
_PRODUCT = re.compile("mm$|matmul|linear")
FEW_ROWS = 10
"""A table has at least so many times the rows that a step uses; below, going over all of it costs little more."""


@dataclass(frozen=True)
class DenseTables(Measurement):
    """Dense gradients of tables; times are means per step.

    Args:
        table_rows: Rows of the largest such table; 0 where there is none.
        used: Rows that one look-up in it uses at most.
        cost_ns: Time of the operators that go over whole tables: the gradient, zeros, the optimizer's update.
        largest: The gradient that takes most time; None where there is none.
    """

    table_rows: int
    used: int
    cost_ns: int
    largest: Operator | None

    @classmethod
    def of(cls, rank: Rank) -> "DenseTables":
        """Return the tables of a rank; sizes of inputs must be recorded where there are such gradients."""
        on_device = rank.made(OperatorTable).on_device
        parts = operator_parts(rank)
        gradients = [(part, _shapes(part)) for part in parts if part.name in GRADIENTS]
        if not gradients:
            return cls(0, 0, 0, None)
        if not any(len(shapes) > 1 for _, shapes in gradients):
            raise MissingEvidence("shapes")
        used: dict[int, int] = {}  # by the width of a row
        for _, shapes in gradients:
            if len(shapes) > 1 and shapes[0]:
                width = shapes[0][-1]
                used[width] = max(used.get(width, 0), prod(shapes[1]))
        sized = [(part, _shapes(part)) for part in parts]
        # A layer of the table's shape (a language model's head, tied or not) needs its dense gradient.
        layers = {tuple(sorted(shape)) for part, shapes in sized if _PRODUCT.search(part.name) for shape in shapes}
        whole = [
            (part, shapes[0][0])
            for part, shapes in sized
            if part.name not in GRADIENTS
            and part.phase in ("backward", "optimizer")
            and shapes
            and len(shapes[0]) == 2
            and tuple(sorted(shapes[0])) not in layers
            and 0 < FEW_ROWS * used.get(shapes[0][1], 0) <= shapes[0][0]
        ]
        if not whole:
            return cls(0, 0, 0, None)
        made = [part for part, _ in gradients]
        table_rows, width = max((size, _shapes(part)[0][1]) for part, size in whole)
        return cls(
            table_rows=table_rows,
            used=used[width],
            cost_ns=sum(_time_ns(part, on_device) for part in (*made, *(part for part, _ in whole))),
            largest=max(made, key=lambda part: _time_ns(part, on_device)),
        )


def _time_ns(part: Operator, on_device: bool) -> int:
    return part.device_self_ns if on_device else part.cpu_usual_ns


def _shapes(part: Operator) -> list[list[int]]:
    """Return the sizes of an operator's inputs as far as each is one tensor, in order."""
    try:
        shapes = json.loads(part.shapes or "[]")
    except ValueError:  # long lists of tensors are kept in part
        return []
    flat = []
    for one in shapes:
        if not isinstance(one, list) or not all(isinstance(size, int) for size in one):
            break
        flat.append(one)
    return flat
