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


def busiest_line(rank: Rank) -> tuple[Location, float]:
    """Return the user's line (where no line is known: the module) that most operators belong to, and its turns.

    With the line go the module that most of them are in, and what of it costs most to call.
    Turns are how often it calls the same operator in the same module, per step and call of the model: layers are
    modules of their own, and tokens calls of their own, so that many turns are a loop over pieces of a tensor.
    """
    tree = rank.deep_calltree
    timeline = rank.deep
    ops = np.flatnonzero(tree.is_op & ~timeline.in_loader & ~of_update(rank, tree))
    place = tree.place[ops] if len(tree.places) else tree.module[ops]
    counts = np.bincount(place[place >= 0])
    if not len(counts):
        return Location(), 0.0
    best = int(counts.argmax())
    inside = ops[place == best]
    modules = tree.module[inside]
    common = int(np.bincount(modules[modules >= 0]).argmax()) if (modules >= 0).any() else -1
    at = tree.places[best] if len(tree.places) else None
    location = Location(
        module=tree.modules[common] if common >= 0 else None,
        file=at.file if at else None,
        line=at.line if at else None,
        function=at.function if at else None,
        op=_costliest(tree, inside[modules == common]),
    )
    return location, _turns(tree, inside) / max(len(timeline.steps), 1)


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
