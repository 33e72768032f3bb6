"""Loops: places in the program that go through a tensor element by element."""

from collections import defaultdict

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
        ops: Operators per step in the loop.
        host_ns: Their time on the host, that of their backward pass included.
        largest: The operator that takes elements there; None where there is none.
        known_place: Whether the place is a line or a module; else it is the whole program.
        step_ns: Mean duration of a step.
        on_device: Whether a device works.
    """

    takes: float
    ops: float
    host_ns: int
    largest: Operator | None
    known_place: bool
    step_ns: int
    on_device: bool

    @classmethod
    def of(cls, rank: Rank) -> "Loops":
        """Return the busiest loop of a rank."""
        table = rank.made(OperatorTable)
        places: dict[object, list[Operator]] = defaultdict(list)
        backward: dict[object, list[Operator]] = defaultdict(list)
        for part in operator_parts(rank):
            if part.phase in ("forward", "backward"):
                (places if part.phase == "forward" else backward)[part.place or part.module].append(part)
        takes = {
            place: sum(part.calls_per_step for part in parts if part.name in _TAKING_OUT)
            for place, parts in places.items()
        }
        most = max(takes, key=lambda place: takes[place], default=None)
        parts = places.get(most, [])
        taking = [part for part in parts if part.name in _TAKING_OUT]
        turns = takes.get(most, 0.0)
        calls: dict[str, float] = defaultdict(float)
        for part in parts:
            calls[part.name] += part.calls_per_step
        # What the place calls less often than it takes pieces out is not in the loop.
        parts = [part for part in parts if calls[part.name] >= turns * LEAST_CALLS_PER_TURN]
        again = [part for part in backward[most] if part.calls_per_step >= turns * LEAST_CALLS_PER_TURN]
        return cls(
            takes=turns,
            ops=sum(part.calls_per_step for part in parts),
            host_ns=sum(part.cpu_self_ns for part in (*parts, *again)),
            largest=max(taking, key=lambda part: part.calls, default=None),
            known_place=most is not None,
            step_ns=table.step_ns,
            on_device=table.on_device,
        )
