"""OperatorGroups: a recording's operators put together by name, phase, module, line and shapes."""

import re
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from uncork.calltree import CallTree
from uncork.driving import group_medians
from uncork.events import DEVICE_KINDS, Kind, together
from uncork.formulas import FORMULAS, Work, work_of
from uncork.intervals import Intervals, contains, intervals
from uncork.records import dataclass
from uncork.tensorcores import saves_arithmetic
from uncork.timeline import Timeline, once

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

MOST_OVER_MEDIAN = 10
"""A call that takes more than this many times the median of its like was interrupted, or was the first of its kind."""
_BY_PARAMETERS = re.compile("conv|attention|batch_norm|layer_norm|group_norm|rms_norm")
"""Operators whose work depends on scalars too, as part of their names."""


@dataclass(frozen=True, eq=False)
class OperatorGroups:
    """Groups of like operators; all arrays have shape (groups,), times are sums over the whole window.

    Args:
        tree: Where they are from.
        slices: The operators, indices in the host slices, int64 (operators,).
        group: The group of each, int64 (operators,).
        first: The operator of each group that took longest on the host (an index in the host slices).
        calls: How many there are.
    """

    tree: CallTree
    slices: IntArray
    group: IntArray
    first: IntArray
    calls: IntArray

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.first)

    def total(self, amount: IntArray) -> IntArray:
        """Return the sum over each group of an amount per host slice."""
        sums = np.bincount(self.group, amount[self.slices], minlength=len(self))
        return sums.astype(np.int64)

    @cached_property
    def cpu_self_ns(self) -> IntArray:
        """Return the host time of the operators themselves."""
        return self.total(self.tree.op_self_ns)

    @cached_property
    def cpu_usual_ns(self) -> IntArray:
        """Return the host time of the operators themselves, of no call more than some times the median one's."""
        own = self.tree.op_self_ns[self.slices]
        most = group_medians(self.group, own, len(self), upper=True) * MOST_OVER_MEDIAN
        kept = np.bincount(self.group, np.minimum(own, most[self.group]), minlength=len(self))
        return kept.astype(np.int64)

    @cached_property
    def cpu_total_ns(self) -> IntArray:
        """Return the host time with what they call."""
        return self.total(self.tree.host.dur_ns)

    @cached_property
    def device_self_ns(self) -> IntArray:
        """Return the device time that they launched themselves."""
        return self.total(self.tree.device_ns)

    @cached_property
    def device_total_ns(self) -> IntArray:
        """Return the device time that they and what they call launched."""
        return self.total(self._device_below)

    @cached_property
    def _device_below(self) -> IntArray:
        return self.tree.with_children(self.tree.device_ns)

    @cached_property
    def names(self) -> list[str]:
        """Return the operators' names."""
        return self.tree.timeline.events.names(self.tree.host.row[self.first])

    def codes(self, key: str) -> list[int]:
        """Return for each group the index of the text of an argument of its representative, -1 where it has none."""
        if key not in self._codes:
            self._codes[key] = self.tree.timeline.events.texts(key)[self.tree.host.row[self.first]].tolist()
        return self._codes[key]

    def value(self, code: int) -> object:
        """Return the nested value of a code, None for -1."""
        return self.tree.timeline.events.strings.value(code) if code >= 0 else None

    def argument(self, group: int, key: str) -> object:
        """Return a nested argument of the group's representative."""
        return self.value(self.codes(key)[group])

    @cached_property
    def _codes(self) -> dict[str, list[int]]:
        """Return the index of the text of each group's argument, for those asked for before."""
        return {}

    @cached_property
    def work(self) -> list[Work | None]:
        """Return the work of one call of each group, None where it has no formula or no shapes."""
        # The layers of a model ask the same operators for the same work.
        known = cache(lambda name, *codes: work_of(name, *map(self.value, codes)))
        inputs = zip(*map(self.codes, _INPUTS), strict=True)
        return [
            known(name, *codes) if name in FORMULAS else None for name, codes in zip(self.names, inputs, strict=True)
        ]

    @cached_property
    def counted(self) -> BoolArray:
        """Return for each operator whether its work counts, bool (operators,): no work is counted twice.

        Of nested matrix operators the innermost; other work only where it is not part of one of those.
        """
        size = len(self.tree.host)
        known = np.array([work is not None for work in self.work], bool)
        matrix = np.array([work is not None and work.matrix for work in self.work], bool)
        is_known, is_matrix = np.zeros(size, np.int64), np.zeros(size, np.int64)
        is_known[self.slices] = known[self.group]
        is_matrix[self.slices] = matrix[self.group]
        inner = (is_matrix > 0) & (self.tree.with_children(is_matrix) == 1)
        within = self.tree.parent_value(self.tree.inherit(np.where(inner, np.arange(size), -1))) >= 0
        leaf = (is_known > 0) & (is_matrix == 0) & (self.tree.with_children(is_known) == 1) & ~within
        return np.asarray((inner | leaf)[self.slices], bool)

    @cached_property
    def counted_calls(self) -> IntArray:
        """Return how many operators of each group have work that counts."""
        return np.bincount(self.group, self.counted, minlength=len(self)).astype(np.int64)

    @cached_property
    def counted_device_ns(self) -> IntArray:
        """Return the device time of the work that counts."""
        amounts = self._device_below[self.slices] * self.counted
        return np.bincount(self.group, amounts, minlength=len(self)).astype(np.int64)

    @cached_property
    def kernels(self) -> tuple[list[str], BoolArray]:
        """Return (the longest kernel of each group, or empty; whether any of them saves arithmetic).

        To work that counts belong the kernels of what it calls too.
        """
        device, table = self.tree.timeline.device, self.tree.timeline.events
        launcher = self.tree.timeline.launch_op
        group_of = np.full(len(self.tree.host), -1, np.int64)
        group_of[self.slices] = self.group
        counts = np.zeros(len(self.tree.host), bool)
        counts[self.slices[self.counted]] = True
        around = self.tree.inherit(np.where(counts, np.arange(len(counts)), -1))
        linked = np.flatnonzero(launcher >= 0)
        own, outer = launcher[linked], around[launcher[linked]]
        apart = (outer >= 0) & (outer != own)
        groups = np.concatenate([group_of[own], group_of[outer[apart]]])
        places = np.concatenate([linked, linked[apart]])
        places, groups = places[groups >= 0], groups[groups >= 0]
        names = table.name[device.row[places]]
        one, back = together(groups, names)
        group, name = groups[one], names[one]
        spent = np.bincount(back, device.dur_ns[places], minlength=len(one))
        begin = np.flatnonzero(np.diff(group, prepend=-1))  # combinations stand in the order of their groups
        most = np.zeros(len(self))
        most[group[begin]] = np.maximum.reduceat(spent, begin) if len(begin) else ()
        longest = [""] * len(self)
        for place in np.flatnonzero(spent == most[group])[::-1].tolist():  # of equally long ones the first
            longest[group[place]] = table.strings.text(int(name[place]))
        saves = np.zeros(len(self), bool)
        saves[group[table.fitting(saves_arithmetic, *DEVICE_KINDS)[name]]] = True
        return longest, saves

    @cached_property
    def memory_bytes(self) -> IntArray | None:
        """Return what the operators allocated themselves, None where memory was not recorded."""
        table, tree = self.tree.timeline.events, self.tree
        rows = np.flatnonzero(table.of_kind(Kind.MEMORY))
        if not len(rows):
            return None
        size, kind = table.ints("Bytes", missing=0)[rows], table.ints("Device Type", missing=0)[rows]
        kept = (size > 0) & ((kind != 0) if (kind != 0).any() else True)
        rows, size = rows[kept], size[kept]
        inside = tree.host.innermost(table.track[rows], table.ts_ns[rows])
        op, size = tree.op[inside[inside >= 0]], size[inside >= 0]
        amount = np.bincount(op[op >= 0], size[op >= 0], minlength=len(tree.host)).astype(np.int64)
        return self.total(amount)


_INPUTS = ("Input Dims", "Input type", "Concrete Inputs")


@once
def host_steps(timeline: Timeline) -> Intervals:
    """Return when the host is in the steps: where it runs ahead, steps are bounded by the device, long after it.

    Without marks the window reaches back to the operator that launched the first work in it.
    """
    steps, table, host, device = timeline.steps, timeline.events, timeline.host, timeline.device
    if steps.marked:
        marks = table.name_is(frozenset(steps.names), Kind.USER_ANNOTATION, Kind.CPU_OP)
        rows = np.flatnonzero(marks & timeline.is_step_mark)
        return intervals(table.ts_ns[rows], table.end_ns[rows])
    start, end = timeline.window
    inside = np.flatnonzero(contains(steps.intervals, device.start_ns) & (timeline.launch_op >= 0))
    if len(inside):
        start = min(start, int(host.start_ns[timeline.launch_op[inside]].min()))
    return intervals([start], [end])


@once
def group_operators(tree: CallTree) -> OperatorGroups:
    """Return the groups of the operators that the host starts within the steps, with all that they launch."""
    host, table = tree.host, tree.timeline.events
    slices = np.flatnonzero(tree.is_op & contains(host_steps(tree.timeline), host.start_ns))
    rows = host.row[slices]
    matters = tree.timeline.named(_BY_PARAMETERS, Kind.CPU_OP)[slices]
    dims, types, concrete = (table.texts(key)[rows] for key in _INPUTS)
    _, key = together(
        table.name[rows], tree.phase[slices], tree.module[slices], tree.place[slices],
        dims, types, np.where(matters, concrete, -1),
    )  # fmt: skip
    order = np.argsort(host.dur_ns[slices], kind="stable")
    first = np.full(int(key.max(initial=-1)) + 1, -1, np.int64)
    first[key[order]] = slices[order]
    return OperatorGroups(tree, slices, key, first, np.bincount(key, minlength=len(first)).astype(np.int64))
