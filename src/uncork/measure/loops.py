"""Loops: places in the program that go through a tensor element by element."""

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from uncork.events import Kind
from uncork.measure import Measurement, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.places import Place
from uncork.records import dataclass

_OPERATOR = re.compile("^aten::")
_TAKING_OUT = frozenset({"aten::select", "aten::unbind", "aten::item", "aten::index"})
"""What ``tensor[i]`` and ``for row in tensor`` call."""
LEAST_CALLS_PER_TAKE = 0.1
"""What a function calls less often is not in its loop: a turn may take several pieces, and have a condition inside."""
LEAST_OF_MODULE_PER_TAKE = 0.5
"""The same where only a module is known, which does other things besides; and of a model that is called for pieces."""


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
        taking_out = _taking_out(rank)
        places: dict[tuple[object, str], list[Operator]] = defaultdict(list)
        whole = _functions(operator_parts(rank))
        for part in operator_parts(rank):
            if part.phase in ("forward", "backward"):
                places[whole.get(part.place, part.place) or part.module, part.phase].append(part)
        takes = {
            key: sum(part.calls_per_step for part in parts if part.name in taking_out) for key, parts in places.items()
        }
        # A backward of the program's own may hold the loop; that of an operator takes nothing out.
        most, phase = max(takes, key=lambda key: takes[key], default=(None, "forward"))
        turns = takes.get((most, phase), 0.0)
        taking = [part for part in places[most, phase] if part.name in taking_out]
        in_turns = turns * (LEAST_CALLS_PER_TAKE if isinstance(most, Place) else LEAST_OF_MODULE_PER_TAKE)
        parts = _in_loop(places[most, phase], in_turns)
        again = _in_loop(places[most, "backward"], in_turns) if phase == "forward" else []
        model = []
        least = LEAST_OF_MODULE_PER_TAKE
        if turns and least <= _model_calls(rank) / turns <= 1 / least:
            inside = [part for key in places if key[0] != most for part in places[key] if part.module]
            model = _in_loop(inside, turns * least)
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


def _functions(parts: Iterable[Operator]) -> dict[Place | None, Place]:
    """Return for each line that is known exactly its function, where that is known too: a loop has several lines."""
    places = {part.place for part in parts if part.place}
    begins: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for place in places:
        if not place.exact:
            begins[place.file, place.function].append(place)
    found: dict[Place | None, Place] = {}
    for place in places:
        around = [one for one in begins[place.file, place.function] if (one.line or 0) <= (place.line or 0)]
        if place.exact and around:
            found[place] = max(around, key=lambda one: one.line or 0)
    return found


def _taking_out(rank: Rank) -> set[str]:
    """Return which of those operators the program calls: ``aten::histc`` and others call ``aten::item`` themselves."""
    timeline = rank.timeline
    host, found = timeline.host, set(_TAKING_OUT)
    taken = {name: timeline.named(re.compile(f"^{name}$"), Kind.CPU_OP) for name in sorted(_TAKING_OUT)}
    others = timeline.named(_OPERATOR, Kind.CPU_OP) & ~np.logical_or.reduce(list(taken.values()))
    for name, calls in taken.items():
        inside = host.ancestor_where(others, host.parent[calls]) >= 0
        if 2 * inside.sum() > len(inside):
            found.remove(name)
    return found


def _calls(parts: Iterable[Operator]) -> float:
    return sum(part.calls_per_step for part in parts)


def _in_loop(parts: list[Operator], least: float) -> list[Operator]:
    """Return what a place calls so often per step, all operators of a name together."""
    calls: dict[tuple[str, str], float] = defaultdict(float)
    for part in parts:
        calls[part.name, part.phase] += part.calls_per_step
    return [part for part in parts if calls[part.name, part.phase] >= least]


def _model_calls(rank: Rank) -> float:
    """Return how often per step a module is called that lies in no other, as a model is."""
    timeline, is_module = rank.timeline, rank.calltree.is_module
    calls = np.flatnonzero(is_module & timeline.in_steps & ~timeline.in_loader)
    outermost = timeline.host.ancestor_where(is_module, timeline.host.parent[calls]) < 0
    return int(outermost.sum()) / max(len(timeline.steps), 1)
