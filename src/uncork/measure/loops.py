"""Loops: places in the program that go through a tensor element by element."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from uncork.measure import Measurement, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass

_TAKING_OUT = frozenset({"aten::select", "aten::unbind", "aten::item", "aten::index"})
"""What ``tensor[i]`` and ``for row in tensor`` call."""
LEAST_CALLS_PER_TURN = 0.5
"""Every second turn at least: a loop with a condition inside."""


@dataclass(frozen=True)
class Loops(Measurement):
    """The place that takes most single elements or rows out of tensors; times are means per step.

    Args:
        takes: How often it does so per step.
        ops: Operators per step in the loop, without those of a model that it calls.
        model_ops: Operators per step of the model, where the loop calls it for each piece.
        ops_share: Share of the step's operators that these are, their backward pass included.
        host_ns: The time of both on the host, that of their backward pass included.
        largest: The operator that takes elements there; None where there is none.
        known_place: Whether the place is a line or a module; else it is the whole program.
        step_ns: Mean duration of a step.
        on_device: Whether a device works.
    """

    takes: float
    ops: float
    model_ops: float
    ops_share: float
    host_ns: int
    largest: Operator | None
    known_place: bool
    step_ns: int
    on_device: bool

    @classmethod
    def of(cls, rank: Rank) -> "Loops":
        """Return the busiest loop of a rank."""
        table = rank.made(OperatorTable)
        places: dict[tuple[object, str], list[Operator]] = defaultdict(list)
        for part in operator_parts(rank):
            if part.phase in ("forward", "backward"):
                places[part.place or part.module, part.phase].append(part)
        takes = {key: sum(part.calls_per_step for part in parts if _takes(part)) for key, parts in places.items()}
        # A backward of the program's own may hold the loop; that of an operator takes nothing out.
        most, phase = max(takes, key=lambda key: takes[key], default=(None, "forward"))
        turns = takes.get((most, phase), 0.0)
        taking = [part for part in places[most, phase] if _takes(part)]
        parts = _of_each_turn(places[most, phase], turns)
        again = _of_each_turn(places[most, "backward"], turns) if phase == "forward" else []
        model = []
        if turns and LEAST_CALLS_PER_TURN <= _model_calls(rank) / turns <= 1 / LEAST_CALLS_PER_TURN:
            inside = [part for key in places if key[0] != most for part in places[key] if part.module]
            model = _of_each_turn(inside, turns)
        in_loop = [*parts, *again, *model]
        return cls(
            takes=turns,
            ops=_calls(parts),
            model_ops=_calls(model),
            ops_share=_calls(in_loop) / max(_calls(operator_parts(rank)), 1.0),
            host_ns=sum(part.cpu_usual_ns for part in in_loop),
            largest=max(taking, key=lambda part: part.calls, default=None),
            known_place=most is not None,
            step_ns=table.step_ns,
            on_device=table.on_device,
        )


def _takes(part: Operator) -> bool:
    return part.name in _TAKING_OUT


def _calls(parts: Iterable[Operator]) -> float:
    return sum(part.calls_per_step for part in parts)


def _of_each_turn(parts: list[Operator], turns: float) -> list[Operator]:
    """Return what a place calls at least every second turn: what it calls less often is not in the loop."""
    calls: dict[tuple[str, str], float] = defaultdict(float)
    for part in parts:
        calls[part.name, part.phase] += part.calls_per_step
    return [part for part in parts if calls[part.name, part.phase] >= turns * LEAST_CALLS_PER_TURN]


def _model_calls(rank: Rank) -> float:
    """Return how often per step a module is called that lies in no other, as a model is."""
    timeline, is_module = rank.timeline, rank.calltree.is_module
    calls = np.flatnonzero(is_module & timeline.in_steps & ~timeline.in_loader)
    outermost = timeline.host.ancestor_where(is_module, timeline.host.parent[calls]) < 0
    return int(outermost.sum()) / max(len(timeline.steps), 1)
