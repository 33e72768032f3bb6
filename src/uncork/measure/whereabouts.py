"""Where in the program host slices belong: module and the user's line, from the recording or from its deep window."""

from collections import Counter

import numpy as np
import numpy.typing as npt

from uncork.calltree import FORWARD, OPTIMIZE, CallTree
from uncork.driving import group_medians
from uncork.events import Kind, together
from uncork.findings import Location
from uncork.host_causes import TINY_OP_NS
from uncork.measure import Rank
from uncork.operators import ALLOCATES, operator_class
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def locate(rank: Rank, slices: IntArray) -> list[Location]:
    """Return module, line and operator of some host slices of the recording that durations are taken from.

    Where only the deep window knows places, each has the one that its operator's name is most often called from there.
    """
    places, back = located(rank, slices)
    return [places[place] for place in back.tolist()]


def located(rank: Rank, slices: IntArray) -> tuple[list[Location], IntArray]:
    """Return (the places of some host slices, in order of the first slice of each; which of them each slice has)."""
    tree, timeline = rank.calltree, rank.timeline
    first, back = together(tree.module[slices], tree.place[slices], timeline.host.name[slices])
    order = np.argsort(first)
    rank_of = np.empty_like(order)
    rank_of[order] = np.arange(len(order))
    shown = slices[first[order]]
    names = timeline.events.names(timeline.host.row[shown])
    usual = _usual(rank, set(names)) if rank.deep is not timeline else {}
    places = []
    for place, name in zip((_location(tree, one) for one in shown.tolist()), names, strict=True):
        at = place if place.file or name not in usual else usual[name]
        places.append(Location(None, at.module, at.file, at.line, at.function, name))
    return places, rank_of[back]


NEARLY_AS_MANY = 0.8
"""Of places that so nearly call as many operators, the one that repeats itself most is what can be changed."""
MOST_PLACES = 3


@dataclass(frozen=True)
class Calls:
    """A place that calls operators.

    Args:
        location: The user's line, else the module, the module that most of the calls are in, and what costs most.
        share: Share of all operators, those of their backward pass included.
        turns: How often per step, and per call of the model, it calls the same operator in the same module: layers are
            modules of their own, and tokens calls of their own, so that many turns are a loop over pieces of a tensor.
    """

    location: Location
    share: float
    turns: float


def busiest_lines(rank: Rank) -> tuple[Calls, ...]:
    """Return the user's lines (where no line is known: the modules) that most operators belong to, the busiest first.

    Of some that call nearly as many, the one with the most turns is first.
    """
    tree = rank.deep_calltree
    ops = np.flatnonzero(tree.is_op & ~rank.deep.in_loader & ~of_update(rank, tree))
    place = tree.place[ops] if len(tree.places) else tree.module[ops]
    counts = np.bincount(place[place >= 0])
    order = np.argsort(-counts, kind="stable")[:MOST_PLACES]
    found = [_calls_of(rank, one, ops[place == one], len(ops)) for one in order.tolist() if counts[one]]
    near = [one for one in found if one.share >= NEARLY_AS_MANY * found[0].share]
    first = max(near, key=lambda one: one.turns, default=None)
    return tuple(sorted(found, key=lambda one: one is not first))


def _calls_of(rank: Rank, place: int, inside: IntArray, count: int) -> Calls:
    """Return what is known of some of the operators, those of one place."""
    tree = rank.deep_calltree
    modules = tree.module[inside]
    common = int(np.bincount(modules[modules >= 0]).argmax()) if (modules >= 0).any() else -1
    at = tree.places[place] if len(tree.places) else None
    location = Location(
        module=tree.modules[common] if common >= 0 else None,
        file=at.file if at else None,
        line=at.line if at else None,
        function=at.function if at else None,
        op=_costliest(tree, inside[modules == common]),
    )
    return Calls(location, len(inside) / count, _turns(tree, inside) / max(len(rank.deep.steps), 1))


def _working(tree: CallTree, ops: IntArray) -> IntArray:
    """Return the operators among some that are more than views and allocations, which come with the others' calls."""
    named = tree.timeline.events.fitting(
        lambda one: operator_class(one) == "view" or bool(ALLOCATES.match(one)), Kind.CPU_OP
    )
    return ops[~named[tree.host.name[ops]]]


def _costliest(tree: CallTree, ops: IntArray) -> str:
    """Return the name of the operators among some whose calls cost most; of one that works, not calls, if all do."""
    working = _working(tree, ops)
    own = working[
        tree.timeline.events.fitting(lambda one: one.startswith("aten::"), Kind.CPU_OP)[tree.host.name[working]]
    ]
    ops = next((one for one in (own, working) if len(one)), ops)
    codes, back = np.unique(tree.host.name[ops], return_inverse=True)
    own_ns = tree.host.self_ns[ops]
    spent = np.bincount(back.reshape(-1), np.minimum(own_ns, TINY_OP_NS))
    tiny = group_medians(back.reshape(-1), own_ns, len(codes)) <= TINY_OP_NS
    return tree.timeline.events.strings.text(int(codes[np.lexsort((spent, tiny))[-1]]))


def _turns(tree: CallTree, ops: IntArray) -> float:
    """Return the most calls of one operator in one module among some, per call of the model in the same step.

    Backward operators come with the forward ones that they belong to.
    """
    name = tree.host.name
    ops = _working(tree, ops[tree.timeline.in_steps[ops] & (tree.phase[ops] != OPTIMIZE)])
    forward = ops[tree.phase[ops] == FORWARD]
    ops = forward if len(forward) else ops
    if not len(ops):
        return 0.0
    _, same = together(tree.module[ops], name[ops])
    above = tree.parent_value(tree.inherit(np.where(tree.is_module, 1, -1)))
    roots = np.bincount(name[tree.is_module & (above < 0) & tree.timeline.in_steps])
    calls = int(roots.max()) if len(roots) else 0
    return int(np.bincount(same).max()) / max(calls / max(len(tree.timeline.steps), 1), 1.0)


def of_update(rank: Rank, tree: CallTree) -> BoolArray:
    """Return which slices an optimizer's update calls where no device works: its calls are a cause of their own."""
    found: BoolArray = (tree.phase == OPTIMIZE) & (len(rank.timeline.device) == 0)
    return found


def _location(tree: CallTree, place: int) -> Location:
    """Return module and line of one slice."""
    module, line = int(tree.module[place]), int(tree.place[place])
    at = tree.places[line] if line >= 0 else None
    return Location(
        module=tree.modules[module] if module >= 0 else None,
        file=at.file if at else None,
        line=at.line if at else None,
        function=at.function if at else None,
    )


def _usual(rank: Rank, names: set[str]) -> dict[str, Location]:
    """Return the place that each name is most often called from in the deep window."""
    tree, timeline = rank.deep_calltree, rank.deep
    host, table = timeline.host, timeline.events
    rows = np.flatnonzero(timeline.named(frozenset(names)) & (tree.place >= 0))
    counts: dict[str, Counter[int]] = {}
    for name, place in zip(table.names(host.row[rows]), tree.place[rows].tolist(), strict=True):
        counts.setdefault(name, Counter())[place] += 1
    first = {
        (name, place): row
        for name, place, row in zip(
            table.names(host.row[rows])[::-1], tree.place[rows].tolist()[::-1], rows.tolist()[::-1], strict=True
        )
    }
    return {name: _location(tree, first[name, count.most_common(1)[0][0]]) for name, count in counts.items()}
