"""FlameView: time and memory by call stack and by module path, packed for the page's flame graph."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from uncork.calltree import BACKWARD, PHASES, CallTree
from uncork.events import BoolArray, IntArray, Kind
from uncork.frames import is_users_frame, split_frame
from uncork.intervals import complement, covered_ns
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.views.names import Names, Texts, category, printable
from uncork.measure.views.packed import pack
from uncork.records import dataclass
from uncork.timeline import Timeline

LEAF_SHARE = 0.5
"""A leaf with more than half of the time is a hot spot (seed requirements R4.2)."""
PARENT_SELF_SHARE = 0.2
"""A caller that itself takes a fifth of the time is worth a look; the articles say "large" without a figure."""
SMALLEST_SHARE = 0.0002
"""A fifth of a pixel on a screen 1,000 pixels wide: smaller nodes go into their parent's."""
_MOST_NODES = 60_000
NO_MODULE = "page.no_module"
"""Key of what the page calls work outside every module."""
RECORDER_FRAME = re.compile("^uncork/capture/")
"""Frames of the recorder itself are seen through: what they call belongs to who called them."""


@dataclass(frozen=True, eq=False)
class FlameView(Measurement):
    """The flame graphs of one rank as the page draws them.

    Args:
        block: The packed trees (frontend/src/flame/layout.ts reads them).
        nodes: Nodes of each tree.
    """

    view: ClassVar[bool] = True

    block: bytes
    nodes: Mapping[str, int]

    @classmethod
    def of(cls, rank: Rank) -> "FlameView":
        """Return the flame graphs of a rank's recording, of its deep window where there is one."""
        timeline = rank.deep
        if not len(timeline.host):
            raise MissingEvidence("events")
        weights = {name: np.where(_working(timeline), own, 0) for name, own in _weights(timeline).items()}
        builder = _Builder()
        trees = {"stack": _by_stack(rank.deep_calltree, weights, builder)}
        by_module = _by_module(rank.deep_calltree, weights, builder)
        if by_module is not None:
            trees["module"] = by_module
        callouts = [callout for name, tree in trees.items() for callout in _callouts(name, tree, builder)]
        names = builder.names.keep(*(tree.name for tree in trees.values()))
        places = builder.places.keep(*(tree.place for tree in trees.values()))
        categories, of_name = builder.names.category_codes()
        meta = {
            "names": builder.names.texts,
            "places": builder.places.texts,
            "categories": categories,
            "trees": [
                {"id": name, "nodes": len(tree.depth), "weights": list(tree.own), "folded": tree.folded}
                for name, tree in trees.items()
            ],
            "callouts": callouts,
            "deep": rank.deep is not rank.timeline,
        }
        columns: dict[str, npt.NDArray[np.generic]] = {"category": of_name}
        for number, tree in enumerate(trees.values()):
            named = {"name": names[number], "place": places[number]}
            parts = {"depth": tree.depth, **named, "calls": tree.calls, **tree.own}
            columns |= {f"t{number}_{part}": column for part, column in parts.items()}
        return cls(pack(meta, columns, frozenset()), {name: len(tree.depth) for name, tree in trees.items()})


@dataclass(frozen=True, eq=False)
class _Tree:
    """A call tree in pre-order; columns of shape (nodes,).

    Args:
        depth: Depth of each node.
        name: Its name's number.
        place: Its source place's number.
        calls: How many slices it stands for.
        own: Weight → what the node has without its children.
        folded: Nodes that went into their parents for being small.
    """

    depth: IntArray
    name: IntArray
    place: IntArray
    calls: IntArray
    own: Mapping[str, IntArray]
    folded: int


class _Builder:
    """The names and places that all trees share."""

    def __init__(self) -> None:
        self.names = Names()
        self.places = Texts()


def _weights(timeline: Timeline) -> dict[str, IntArray]:
    """Return what each host slice itself accounts for, shape (slices,); weights that nothing has are left out."""
    host, device, table = timeline.host, timeline.device, timeline.events
    launcher = launchers(timeline)
    known = launcher >= 0
    weights = {
        "device_ns": np.bincount(launcher[known], device.dur_ns[known], minlength=len(host)),
        "self_ns": host.self_ns,
        "idle_ns": _idle_ns(timeline) if len(device) else np.zeros(len(host)),
        "bytes": np.zeros(len(host)),
    }
    rows = np.flatnonzero(table.of_kind(Kind.MEMORY))
    if len(rows):
        size = table.ints("Bytes", missing=0)[rows]
        rows, size = rows[size > 0], size[size > 0]
        inside = host.innermost(table.track[rows].astype(np.int64), table.ts_ns[rows])
        found = inside >= 0
        weights["bytes"] = np.bincount(inside[found], size[found], minlength=len(host))
    return {name: own.astype(np.int64) for name, own in weights.items() if own.any()}


def _working(timeline: Timeline) -> BoolArray:
    """Return which host slices lie on threads that call operators or the device, or on the main thread.

    Others wait (the recorder's own, a progress bar's): their wall time is nobody's work.
    """
    host, kind = timeline.host, timeline.events.kind
    works = np.isin(kind[host.row], (Kind.CPU_OP, Kind.RUNTIME))
    return np.isin(host.track, [*np.unique(host.track[works]), timeline.main_track])


def launchers(timeline: Timeline) -> IntArray:
    """Return the host slice that each device slice hangs below: its runtime call, else its operator, else -1."""
    device = timeline.device
    return np.where(device.launch >= 0, device.launch, timeline.launch_op)


def _idle_ns(timeline: Timeline) -> IntArray:
    """Return how long the device idles while each slice of the main thread is innermost."""
    host = timeline.host
    start, end = timeline.window
    gaps = complement(timeline.device_busy, start, end)
    main = host.track == timeline.main_track
    idle = np.where(main, covered_ns(gaps, host.start_ns, host.end_ns), 0)
    inner = main & (host.parent >= 0)
    children = np.bincount(host.parent[inner], idle[inner], minlength=len(host)).astype(np.int64)
    return np.maximum(idle - children, 0)


def _by_stack(tree: CallTree, weights: Mapping[str, IntArray], builder: _Builder) -> _Tree:
    """Return the tree of who called whom, alike calls together, device work below what launched it.

    Other threads' stacks stand beside the main one's.
    """
    timeline = tree.timeline
    host, table, device = timeline.host, timeline.events, timeline.device
    of_recorder = timeline.named(RECORDER_FRAME)
    node, parent = _merged(tree, host.name.astype(np.int64), of_recorder)
    row = host.row
    launcher = launchers(timeline)
    below = np.flatnonzero(launcher >= 0)
    own = dict(weights)
    if len(below):
        pairs, back = np.unique(
            np.stack([node[launcher[below]], table.name[device.row[below]].astype(np.int64)]),
            axis=1,
            return_inverse=True,
        )
        node = np.concatenate([node, len(parent) + back.reshape(-1)])
        parent = np.concatenate([parent, pairs[0]])
        row = np.concatenate([row, device.row[below]])
        none = np.zeros(len(below), np.int64)
        own = {name: np.concatenate([values, none]) for name, values in weights.items()}
        own["device_ns"] = np.concatenate([np.zeros(len(host), np.int64), device.dur_ns[below]])

    def named(slice_: int) -> tuple[int, int]:
        name, kind = table.strings.text(int(table.name[row[slice_]])), int(table.kind[row[slice_]])
        file, line, function = split_frame(name) if kind == Kind.PYTHON_FUNCTION else ("", 0, "")
        of = category(name, kind)
        if of == "python" and is_users_frame(name):
            of = "python_user"
        place = f"{file}:{line} {function}" if file and line else ""
        return builder.names.number(printable(name), of), builder.places.number(place)

    return _pruned(_collected(node, parent, own, named))


def _by_module(tree: CallTree, weights: Mapping[str, IntArray], builder: _Builder) -> _Tree | None:
    """Return the tree of module paths, then phase, then operator; None where no module is known."""
    table, host = tree.timeline.events, tree.host
    if not len(tree.modules):
        return None
    op = tree.op
    op_name = np.where(op >= 0, host.name[np.maximum(op, 0)].astype(np.int64), -1)
    triples, back, count = np.unique(
        np.stack([tree.module, tree.phase, op_name]), axis=1, return_inverse=True, return_counts=True
    )
    back = back.reshape(-1)
    sums = {name: np.bincount(back, own, minlength=len(count)).astype(np.int64) for name, own in weights.items()}
    root = _Branch()
    for at, (module, phase, operator) in enumerate(triples.T.tolist()):
        path = [part for part in tree.modules[module].split(".") if part] if module >= 0 else [NO_MODULE]
        steps: list[tuple[str, str]] = [(part, "module") for part in path]
        steps.append((PHASES[phase], "backward" if phase == BACKWARD else "region"))
        if operator >= 0:
            steps.append((table.strings.text(operator), category(table.strings.text(operator), Kind.CPU_OP)))
        root.add(steps, int(count[at]), {name: int(total[at]) for name, total in sums.items()})
    return _pruned(root.flatten(tuple(sums), builder))


class _Branch:
    """A node of a small tree that is built path by path."""

    def __init__(self) -> None:
        self.below: dict[tuple[str, str], _Branch] = {}
        self.calls = 0
        self.own: dict[str, int] = {}

    def add(self, path: Iterable[tuple[str, str]], calls: int, own: Mapping[str, int]) -> None:
        """Add weights at the end of a path of (name, category)."""
        branch = self
        for step in path:
            branch = branch.below.setdefault(step, _Branch())
        branch.calls += calls
        for name, value in own.items():
            branch.own[name] = branch.own.get(name, 0) + value

    def flatten(self, weights: tuple[str, ...], builder: _Builder) -> _Tree:
        """Return the tree below this node in pre-order."""
        rows: list[tuple[int, int, int]] = []
        own: dict[str, list[int]] = {name: [] for name in weights}
        stack = [(0, key, branch) for key, branch in reversed(self.below.items())]
        while stack:
            depth, (text, of), branch = stack.pop()
            rows.append((depth, builder.names.number(printable(text), of), branch.calls))
            for name in weights:
                own[name].append(branch.own.get(name, 0))
            stack.extend((depth + 1, key, below) for key, below in reversed(branch.below.items()))
        column = np.array(rows, np.int64).reshape(-1, 3).T
        columns = {weight: np.array(values, np.int64) for weight, values in own.items()}
        return _Tree(column[0], column[1], np.zeros(len(rows), np.int64), column[2], columns, 0)


def _merged(tree: CallTree, key: IntArray, seen_through: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the merged node of each slice, and each node's parent: slices alike under alike parents are one node.

    Slices that are to be seen through count as part of their parent.
    """
    host = tree.host
    node = np.zeros(len(host), np.int64)
    parents: list[IntArray] = []
    count = 0
    for whole in tree.levels:
        level = whole
        above = np.where(host.parent[level] >= 0, node[np.maximum(host.parent[level], 0)], -1)
        clear = seen_through[level] & (above >= 0)
        node[level[clear]] = above[clear]
        level, above = level[~clear], above[~clear]
        pairs, back = np.unique(np.stack([above, key[level]]), axis=1, return_inverse=True)
        node[level] = count + back.reshape(-1)
        parents.append(pairs[0])
        count += pairs.shape[1]
    return node, np.concatenate(parents) if parents else np.empty(0, np.int64)


def _collected(
    node: IntArray, parent: IntArray, weights: Mapping[str, IntArray], named: Callable[[int], tuple[int, int]]
) -> _Tree:
    """Return merged nodes in pre-order, children in the order in which they first occur."""
    count = len(parent)
    first = np.full(count, len(node), np.int64)
    np.minimum.at(first, node, np.arange(len(node)))
    order = _preorder(parent, first)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    depth = np.zeros(count, np.int64)
    for one in range(count):  # parents have smaller numbers than their children
        if parent[one] >= 0:
            depth[one] = depth[parent[one]] + 1
    names = np.array([named(int(first[one])) for one in order], np.int64).reshape(-1, 2)
    sums = {name: np.bincount(node, own, minlength=count).astype(np.int64)[order] for name, own in weights.items()}
    calls = np.bincount(node, minlength=count)[order]
    return _Tree(depth[order], names[:, 0], names[:, 1], calls, sums, 0)


def _preorder(parent: IntArray, first: IntArray) -> IntArray:
    """Return nodes so that each is followed by its descendants, siblings by first occurrence."""
    children: list[list[int]] = [[] for _ in range(len(parent) + 1)]
    for one in np.argsort(first, kind="stable").tolist():
        children[parent[one]].append(one)  # parent -1 is the last list
    order, stack = [], children[-1][::-1]
    while stack:
        one = stack.pop()
        order.append(one)
        stack.extend(reversed(children[one]))
    return np.array(order, np.int64)


def _pruned(tree: _Tree) -> _Tree:
    """Return a tree without the nodes that no weight makes visible; what they had goes to their parents."""
    parent = parents(tree.depth)
    totals = {name: with_children(parent, own) for name, own in tree.own.items()}
    share = np.zeros(len(parent))
    for total in totals.values():
        whole = int(total[parent < 0].sum()) or 1
        share = np.maximum(share, total / whole)
    least = SMALLEST_SHARE
    if (share >= least).sum() > _MOST_NODES:
        least = float(np.partition(share, -_MOST_NODES)[-_MOST_NODES])
    kept = share >= least  # a parent's share is never below its child's, so what is kept hangs together
    home = np.where(kept, np.arange(len(parent)), -1)
    for one in np.flatnonzero(~kept).tolist():
        home[one] = home[parent[one]] if parent[one] >= 0 else -1
    number = np.cumsum(kept) - 1
    moved = home >= 0
    own = {
        name: np.bincount(number[home[moved]], values[moved], minlength=int(kept.sum())).astype(np.int64)
        for name, values in tree.own.items()
    }
    return _Tree(tree.depth[kept], tree.name[kept], tree.place[kept], tree.calls[kept], own, int((~kept).sum()))


def parents(depth: IntArray) -> IntArray:
    """Return each node's parent from the depths in pre-order, -1 for roots."""
    found = np.full(len(depth), -1, np.int64)
    open_nodes: list[int] = []
    for one, level in enumerate(depth.tolist()):
        del open_nodes[level:]
        if open_nodes:
            found[one] = open_nodes[-1]
        open_nodes.append(one)
    return found


def with_children(parent: IntArray, own: IntArray) -> IntArray:
    """Return each node's value with its descendants'."""
    total = own.tolist()
    for one in range(len(total) - 1, -1, -1):
        if parent[one] >= 0:
            total[parent[one]] += total[one]
    return np.array(total, np.int64)


def _callouts(name: str, tree: _Tree, builder: _Builder) -> list[Mapping[str, object]]:
    """Return what the graph shows at a glance: leaves over half of the time, callers with much time of their own."""
    weight = next((one for one in ("device_ns", "self_ns") if one in tree.own), None)
    if weight is None or not len(tree.depth):
        return []
    parent = parents(tree.depth)
    own = tree.own[weight]
    whole = int(own.sum()) or 1
    leaf = np.ones(len(parent), bool)
    leaf[parent[parent >= 0]] = False
    found: list[Mapping[str, object]] = []
    for node in np.argsort(-own, kind="stable")[:10].tolist():
        share = int(own[node]) / whole
        limit = LEAF_SHARE if leaf[node] else PARENT_SELF_SHARE
        if share <= limit or (not leaf[node] and weight == "device_ns"):
            continue
        params = {"name": builder.names.texts[int(tree.name[node])], "share": share}
        key = f"flame.{'leaf' if leaf[node] else 'parent'}.{weight.removesuffix('_ns')}"
        found.append({"tree": name, "node": node, "message": {"id": key, "params": params}})
    return found
