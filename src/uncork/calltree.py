"""CallTree: who called whom; each span's operator, module, user's line and phase, backward work included."""

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uncork.events import Kind, distinct
from uncork.frames import is_users_frame, is_users_region, split_frame
from uncork.intervals import contains
from uncork.nesting import HostSlices
from uncork.operators import AUTOGRAD
from uncork.places import Place, begins_outermost, is_library_frame, place_of, sampled_lines
from uncork.timeline import Timeline, once

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MODULE = "nn.Module: "
"""Prefix of a module's region: the recorder's hold its path (``encoder.layer.3``), Kineto's class and number."""
MODULE_NAME = re.compile(f"^{re.escape(MODULE)}")
COMPILED = re.compile(r"^Torch-Compiled Region")
BACKWARD_NODE = re.compile(r"^autograd::engine::evaluate_function|^\w+(::\w+)*Backward\d*$|AccumulateGrad$")
_ACCUMULATES = re.compile(r"AccumulateGrad$")
_GRADIENT_BY_HAND = re.compile(r"^aten::\w+_backward(_\w+)?$")
CHECKPOINT = re.compile(r"^CheckpointFunctionBackward$|torch/utils/checkpoint\.py\(\d+\): (recompute_fn|unpack_hook)")
MOST_CHECKPOINT_NODES_SHARE = 0.5
"""One checkpoint spans many nodes: 2 % of them held recomputation in the study's recording, a second derivative all."""
LEAST_IN_CHECKPOINT = 6
"""Operators that nodes with recomputation hold on average, those of a whole block; nodes with a second derivative have
one to four. What says itself that it is a checkpoint, or a module's call, needs no count."""
OPTIMIZER = re.compile(r"^Optimizer\.(step|zero_grad)#")
PHASES = ("forward", "backward", "recompute", "optimizer", "loading")
FORWARD, BACKWARD, RECOMPUTE, OPTIMIZE, LOADING = range(5)


@once
def updates(timeline: Timeline) -> tuple[IntArray, IntArray]:
    """Return (slices that are an optimizer's step or its zeroing of gradients, when the update itself begins in each).

    A closure that computes the loss runs inside the step, as with Lightning and L-BFGS: the update is behind its last
    backward.
    """
    host = timeline.host
    regions = np.flatnonzero(timeline.named(OPTIMIZER, Kind.CPU_OP, Kind.USER_ANNOTATION))
    nodes = np.flatnonzero(timeline.named(AUTOGRAD, Kind.CPU_OP, Kind.USER_ANNOTATION))
    nodes = nodes[np.argsort(host.start_ns[nodes], kind="stable")]
    start_ns, end_ns = host.start_ns[regions], host.end_ns[regions]
    first, after = (np.searchsorted(host.start_ns[nodes], when) for when in (start_ns, end_ns))
    over = np.append(np.maximum.accumulate(host.end_ns[nodes]), 0)[after - 1]
    return regions, np.where(after > first, np.minimum(over, end_ns), start_ns)


class CallTree:
    """Questions about who called whom in one recording; arrays have shape (slices,) of `Timeline.host`.

    Args:
        timeline: The recording's order of events.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.host: HostSlices = timeline.host
        self._kind = self.host.kind

    @cached_property
    def levels(self) -> list[IntArray]:
        """Return the slices at each depth, outermost first."""
        order = np.argsort(self.host.depth, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.host.depth))[:-1]) if len(order) else []

    def inherit(self, own: IntArray) -> IntArray:
        """Return each slice's own value, or that of the nearest enclosing slice that has one; -1 means none."""
        value = own.copy()
        for level in self.levels[1:]:
            lacking = level[own[level] < 0]
            value[lacking] = value[self.host.parent[lacking]]
        return value

    def with_children(self, amount: IntArray) -> IntArray:
        """Return each slice's amount with the amounts of all slices inside it."""
        total = amount.copy()
        for level in reversed(self.levels[1:]):
            np.add.at(total, self.host.parent[level], total[level])
        return total

    # --- operators ---------------------------------------------------------------------------------------------

    @cached_property
    def is_op(self) -> BoolArray:
        """Return whether a slice is an operator: neither a module's region nor a step mark nor a Python frame."""
        found: BoolArray = (self._kind == Kind.CPU_OP) & ~self.timeline.named(MODULE_NAME, Kind.CPU_OP)
        return found

    @cached_property
    def op(self) -> IntArray:
        """Return the operator that each slice is, or runs in; -1 for none."""
        return self.inherit(np.where(self.is_op, np.arange(len(self.host)), -1))

    @cached_property
    def op_self_ns(self) -> IntArray:
        """Return for each operator its host time without that of operators inside; runtime calls count for it."""
        inner = np.flatnonzero(self.is_op & (self._parent_op >= 0))
        own = np.where(self.is_op, self.host.dur_ns, 0)
        children = np.bincount(self._parent_op[inner], self.host.dur_ns[inner], minlength=len(own)).astype(np.int64)
        return np.maximum(own - children, 0)

    @cached_property
    def _parent_op(self) -> IntArray:
        """Return the nearest operator around each slice, not itself."""
        return self.parent_value(self.op)

    def parent_value(self, value: IntArray) -> IntArray:
        """Return each slice's parent's value, -1 for outermost slices."""
        return np.where(self.host.parent >= 0, value[np.maximum(self.host.parent, 0)], -1)

    @cached_property
    def device_ns(self) -> IntArray:
        """Return for each operator the device time that it launched itself."""
        device, launcher = self.timeline.device, self.timeline.launch_op
        known = launcher >= 0
        return np.bincount(launcher[known], device.dur_ns[known], minlength=len(self.host)).astype(np.int64)

    # --- forward and backward ----------------------------------------------------------------------------------

    @cached_property
    def node(self) -> IntArray:
        """Return the innermost backward node that each slice is, or runs in; -1 outside the backward pass."""
        return self.inherit(np.where(self._is_node, np.arange(len(self.host)), -1))

    @cached_property
    def _named_node(self) -> BoolArray:
        return self.timeline.named(BACKWARD_NODE, Kind.CPU_OP) & self.is_op

    @cached_property
    def _is_node(self) -> BoolArray:
        named = self._named_node
        # ``evaluate_function: X`` holds X itself; the outer of the two is the node.
        above = self.parent_value(np.where(named, np.arange(len(named)), -1))
        same = (above >= 0) & (self.sequence == self.sequence[np.maximum(above, 0)])
        outermost: BoolArray = named & ~same
        return outermost

    @cached_property
    def sequence(self) -> IntArray:
        """Return each slice's number of its node in autograd's graph, -1 for none."""
        return self.timeline.events.ints("Sequence number")[self.host.row]

    @cached_property
    def forward_of(self) -> IntArray:
        """Return for each backward node the forward operator that made it, -1 where it is not recorded.

        The number that both carry is per forward thread; operators that make no node show the next number, so the
        last one that shows it counts. AccumulateGrad has no forward: it belongs with the node before it.
        """
        found = np.full(len(self.host), -1, np.int64)
        nodes = np.flatnonzero(self._is_node)
        numbered = nodes[self.sequence[nodes] >= 0]
        makers = np.flatnonzero(self.is_op & (self.sequence >= 0) & (self._forward_thread <= 0) & ~self._named_node)
        if len(makers) and len(numbered):
            found[numbered] = self._makers_of(makers, numbered)
        accumulates = self.timeline.named(_ACCUMULATES, Kind.CPU_OP)
        place = np.where(accumulates[nodes], -1, np.arange(len(nodes)))
        before = np.maximum.accumulate(place) if len(place) else place
        use = np.flatnonzero((place < 0) & (before >= 0))
        use = use[self.host.track[nodes[use]] == self.host.track[nodes[before[use]]]]
        found[nodes[use]] = found[nodes[before[use]]]
        return found

    @cached_property
    def _forward_thread(self) -> IntArray:
        return self.timeline.events.ints("Fwd thread id", missing=0)[self.host.row]

    def _makers_of(self, makers: IntArray, nodes: IntArray) -> IntArray:
        """Return the last maker of each node's number on the forward thread that its ``Fwd thread id`` means."""
        host, found = self.host, np.full(len(nodes), -1, np.int64)
        threads = self._forward_thread[nodes]
        for thread in sorted(set(threads.tolist())):
            asked = np.flatnonzero(threads == thread)
            best, most = found[asked], -1
            for track in distinct(host.track[makers], len(self.timeline.events.tracks))[0]:
                candidates = makers[host.track[makers] == track]
                answer = self._last_before(candidates, nodes[asked])
                if (hits := int((answer >= 0).sum())) > most:
                    best, most = answer, hits
            found[asked] = best
        return found

    def _last_before(self, makers: IntArray, nodes: IntArray) -> IntArray:
        """Return the last maker with each node's number that started before it."""
        start, number = self.host.start_ns, self.sequence
        order = makers[np.lexsort((start[makers], number[makers]))]
        first = np.searchsorted(number[order], number[nodes], side="left")
        after = np.searchsorted(number[order], number[nodes], side="right")
        last = order[np.maximum(after - 1, 0)]
        fits = (after > first) & (start[last] <= start[nodes])
        return np.where(fits, last, -1)

    @cached_property
    def recomputed(self) -> BoolArray:
        """Return whether a slice is forward work done again inside the backward pass (activation checkpointing)."""
        # Without grad mode an operator carries no number, so one that does inside a node is building a graph anew.
        again = self.is_op & (self.node >= 0) & ~self._named_node & (self.sequence >= 0) & (self._forward_thread <= 0)
        module = self.timeline.named(MODULE_NAME) & (self.node >= 0)
        # A second derivative (create_graph) numbers the operators of nearly every node, a checkpoint those of one.
        nodes = len(distinct(self.node[again], len(self.host))[0])
        many = nodes > MOST_CHECKPOINT_NODES_SHARE * self._is_node.sum()
        if many or 1 < nodes > again.sum() / LEAST_IN_CHECKPOINT:
            in_checkpoint = self.inherit(np.where(self.timeline.named(CHECKPOINT), 1, -1)) > 0
            again &= in_checkpoint | (self.inherit(np.where(module, 1, -1)) > 0)
        # The operators below the marked ones carry no mark of their own; a node nested in them is backward again.
        mark = np.where(again | module, 1, np.where(self._is_node, 0, -1))
        recompute: BoolArray = self.inherit(mark) == 1
        return recompute

    @cached_property
    def phase(self) -> IntArray:
        """Return the index in `PHASES` of what each slice is part of."""
        # Gradients computed by hand stand outside any node.
        named = self.timeline.named(_GRADIENT_BY_HAND, Kind.CPU_OP)
        phase = np.where((self.node >= 0) | (self.inherit(np.where(named, 1, -1)) > 0), BACKWARD, FORWARD)
        phase[self.recomputed] = RECOMPUTE
        regions, begins_ns = updates(self.timeline)
        begin_ns = np.full(len(phase), -1, np.int64)
        begin_ns[regions] = begins_ns
        begin_ns = self.inherit(begin_ns)
        phase[(begin_ns >= 0) & (self.host.start_ns >= begin_ns)] = OPTIMIZE
        in_loader = (self.host.track == self.timeline.main_track) & (phase == FORWARD)
        phase[in_loader & contains(self.timeline.loader_waits, self.host.start_ns)] = LOADING
        return phase

    # --- modules -----------------------------------------------------------------------------------------------

    @cached_property
    def is_module(self) -> BoolArray:
        """Return whether a slice is a module's call: a region of the recorder's, else a frame that Kineto names so."""
        regions = self.timeline.named(MODULE_NAME, Kind.CPU_OP, Kind.USER_ANNOTATION)
        return regions if regions.any() else self.timeline.named(MODULE_NAME)

    @cached_property
    def _module(self) -> tuple[IntArray, tuple[str, ...]]:
        """Return (index of the module path of each slice, the paths)."""
        calls = self.is_module
        frames = calls & (self._kind == Kind.PYTHON_FUNCTION)
        own, paths = self._class_paths(np.flatnonzero(calls)) if frames.any() else self._region_paths(calls)
        value = self._through_nodes(own, self.inherit(own))
        regions = self.timeline.named(COMPILED, Kind.CPU_OP, Kind.USER_ANNOTATION)
        regions |= self.timeline.named(is_users_region, Kind.USER_ANNOTATION)
        if regions.any():
            # Where no module is known the region stands for it: compiled code has none, and users name parts of theirs.
            own, names = self._region_paths(regions)
            region = self._through_nodes(own, self.inherit(own))
            value = np.where((value < 0) & (region >= 0), region + len(paths), value)
            paths += names
        return value, paths

    def _region_paths(self, regions: BoolArray) -> tuple[IntArray, tuple[str, ...]]:
        """Return the paths that regions have in their names."""
        table, host = self.timeline.events, self.host
        own = np.full(len(host), -1, np.int64)
        used, own[regions] = np.unique(host.name[regions], return_inverse=True)
        return own, tuple(table.strings.text(int(index)).removeprefix(MODULE) for index in used)

    def _class_paths(self, rows: IntArray) -> tuple[IntArray, tuple[str, ...]]:
        """Return the paths made of class and number of each module around a frame, outermost first."""
        table, host = self.timeline.events, self.host
        own = np.full(len(host), -1, np.int64)
        itself = own.copy()
        itself[rows] = rows
        above = self.parent_value(self.inherit(itself))
        known: dict[tuple[int, int], int] = {}
        paths: list[str] = []
        depth = host.depth[rows]
        for level in sorted(set(depth.tolist())):
            at = rows[depth == level]
            outer = np.where(above[at] >= 0, own[np.maximum(above[at], 0)], -1)
            pairs, back = np.unique(np.stack([outer, host.name[at]]), axis=1, return_inverse=True)
            codes = []
            for parent, name in pairs.T.tolist():
                if (parent, name) not in known:
                    known[parent, name] = len(paths)
                    last = table.strings.text(name).removeprefix(MODULE)
                    paths.append(f"{paths[parent]}.{last}" if parent >= 0 else last)
                codes.append(known[parent, name])
            own[at] = np.array(codes, np.int64)[back.reshape(-1)]
        return own, tuple(paths)

    def _through_nodes(self, own: IntArray, inside: IntArray) -> IntArray:
        """Return values where backward work has that of its forward operator instead of what lies around it."""
        nodes = np.flatnonzero(self._is_node)
        forward = self.forward_of[nodes]
        through = own.copy()
        # -2: a node whose forward is unknown must not take what merely surrounds it.
        through[nodes] = np.where(forward >= 0, inside[np.maximum(forward, 0)], -2)
        through[nodes[through[nodes] < 0]] = len(own)
        value = self.inherit(through)
        return np.where(value == len(own), -1, value)

    @property
    def module(self) -> IntArray:
        """Return the index in `modules` of each slice's module, -1 where none is known."""
        return self._module[0]

    @property
    def modules(self) -> tuple[str, ...]:
        """Return the module paths that occur."""
        return self._module[1]

    # --- the user's lines --------------------------------------------------------------------------------------

    @cached_property
    def _place(self) -> tuple[IntArray, tuple[Place, ...]]:
        """Return (index of the user's place of each slice, the places)."""
        frames = self._kind == Kind.PYTHON_FUNCTION
        if frames.any():
            own, places = self._frame_places()
        else:
            own, places = self._stack_places()
            # Backward operators carry the stack of backward() itself, which is not where their work was asked for.
            own[self.node >= 0] = -1
        return self._through_nodes(own, self.inherit(own)), places

    def _frame_places(self) -> tuple[IntArray, tuple[Place, ...]]:
        """Return places by Python frames: in a user's frame the place is where it calls what runs inside."""
        table, host = self.timeline.events, self.host
        users = self.timeline.named(is_users_frame, Kind.PYTHON_FUNCTION)
        if not users.any():
            users = self.timeline.named(is_library_frame, Kind.PYTHON_FUNCTION)
        site = table.texts("CallFrom")[host.row]
        outer = self.parent_value(np.where(users, np.arange(len(host)), -1))
        # A frame, or what a frame calls directly: there the line is settled for everything further inside.
        settled = np.flatnonzero(users | (outer >= 0))
        frame = np.where(users[settled], settled, outer[settled])
        call = np.where(users[settled], -1, site[settled])
        name = host.name[frame].astype(np.int64)
        line = np.zeros(len(settled), np.int64)
        called = ~users[settled]
        line[called] = self._sampled(settled[called], name[called])
        return self._settle(settled, name, call, line)

    def _sampled(self, at: IntArray, frame: IntArray) -> IntArray:
        """Return the lines that calls of user's frames were made from, as samples saw them; 0 where unseen."""
        host, moments = self.host, self.timeline.recording.moments
        if moments is None or not len(at):
            return np.zeros(len(at), np.int64)
        pairs, kind = np.unique(np.stack([host.name[at], frame]), axis=1, return_inverse=True)
        kind = kind.reshape(-1)
        main = np.flatnonzero(host.track[at] == self.timeline.main_track)
        main = main[np.argsort(host.start_ns[at[main]], kind="stable")]
        frames = [self.timeline.events.strings.text(name) for name in pairs[1].tolist()]
        calls = at[main]
        return sampled_lines(moments, host.start_ns[calls], host.end_ns[calls], kind[main], frames)[kind]

    def _settle(
        self, at: IntArray, name: IntArray, call: IntArray, line: IntArray
    ) -> tuple[IntArray, tuple[Place, ...]]:
        """Return places at some slices, made once per distinct (frame's name, call site, sampled line)."""
        strings = self.timeline.events.strings
        own = np.full(len(self.host), -1, np.int64)
        if not len(at):
            return own, ()
        kinds, back = np.unique(np.stack([name, call, line]), axis=1, return_inverse=True)
        own[at] = back.reshape(-1)
        return own, tuple(
            place_of(strings.text(frame), strings.text(site) if site >= 0 else "", sampled)
            for frame, site, sampled in kinds.T.tolist()
        )

    def _stack_places(self) -> tuple[IntArray, tuple[Place, ...]]:
        """Return places by the ``Call stack`` texts of torch 1.8 to 1.12; their lines are the ones that ran."""
        table, host = self.timeline.events, self.host
        if "Call stack" not in table.args:
            return np.full(len(host), -1, np.int64), ()
        text = table.texts("Call stack")[host.row]
        used = np.unique(text[text >= 0])
        stacks = [table.strings.text(int(index)).rstrip(";").split(";") for index in used]
        outermost_first = sum(map(begins_outermost, stacks)) * 2 > len(stacks)
        known: dict[Place, int] = {}
        codes = np.full(len(used) + 1, -1, np.int64)
        for place, stack in enumerate(stacks):
            frames = [frame.strip() for frame in (reversed(stack) if outermost_first else stack)]
            user = next((frame for frame in frames if is_users_frame(frame)), None)
            if user:
                found = Place(*split_frame(user), exact=True)
                codes[place] = known.setdefault(found, len(known))
        own = np.where(text >= 0, codes[np.searchsorted(used, np.maximum(text, 0)).clip(0, len(used))], -1)
        return own, tuple(known)

    @property
    def place(self) -> IntArray:
        """Return the index in `places` of each slice's place in the user's code, -1 where none is known."""
        return self._place[0]

    @property
    def places(self) -> tuple[Place, ...]:
        """Return the places that occur."""
        return self._place[1]
