"""Properties of attribution: each nanosecond of an operator counts once, and the order of events does not matter."""

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.test_ledger import Row, recording, rows
from uncork.calltree import CallTree
from uncork.events import Kind
from uncork.measure import MissingEvidence, Rank
from uncork.measure.kernels_table import KernelTable
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.recording import Recording
from uncork.timeline import Timeline


def tree_of(found: list[Row]) -> CallTree:
    """Return the call tree of some rows."""
    return CallTree(Timeline(recording(found)))


@settings(max_examples=60, deadline=None)
@given(rows())
def test_own_times_of_operators_sum_to_those_of_the_outermost(found: list[Row]):
    """Children are taken from their parents exactly once, however deep they lie."""
    tree = tree_of(found)
    outermost = tree.is_op & (tree.parent_value(tree.op) < 0)
    assert int(tree.op_self_ns.sum()) == int(tree.host.dur_ns[outermost].sum())


@settings(max_examples=60, deadline=None)
@given(rows())
def test_device_time_is_given_to_one_operator_or_none(found: list[Row]):
    """What operators launched is what the device did, without what has no launch."""
    tree = tree_of(found)
    timeline = tree.timeline
    linked = timeline.launch_op >= 0
    assert int(tree.device_ns.sum()) == int(timeline.device.dur_ns[linked].sum())
    below = tree.with_children(tree.device_ns)
    assert int(below[tree.host.parent < 0].sum()) == int(tree.device_ns.sum())


def table_of(one: Recording) -> OperatorTable | None:
    """Return the table of operators, None where there is none."""
    try:
        return OperatorTable.of(Rank(one))
    except MissingEvidence:
        return None


@settings(max_examples=40, deadline=None)
@given(rows(), st.integers(0, 1000))
def test_the_order_of_events_does_not_matter(found: list[Row], seed: int):
    """Files hold events in any order, and only those that begin and end together depend on it."""
    shuffled = list({(row[0], row[1], row[4]): row for row in found}.values())
    before = table_of(recording(shuffled))
    Random(seed).shuffle(shuffled)
    after = table_of(recording(shuffled))
    assert (before is None) == (after is None)
    if before and after:
        keys = ("name", "phase", "calls", "cpu_total_ns", "device_self_ns", "device_total_ns")
        assert sorted([tuple(row[key] for key in keys) for row in before.rows()]) == sorted(
            [tuple(row[key] for key in keys) for row in after.rows()]
        )


@settings(max_examples=40, deadline=None)
@given(rows())
def test_parts_and_classes_sum_to_the_whole(found: list[Row]):
    """Operators' parts hold all of their device time; kernels' classes all of the device's."""
    rank = Rank(recording(found))
    try:
        table, parts = OperatorTable.of(rank), operator_parts(rank)
        assert sum(part.device_self_ns for part in parts) == table.device_ns
        assert sum(part.calls for part in parts) == sum(row.calls for row in table.operators)
    except MissingEvidence:
        pass
    try:
        kernels = KernelTable.of(rank)
    except MissingEvidence:
        return
    steps = len(rank.timeline.steps)
    inside = [row for row in found if row[2] in (Kind.KERNEL, Kind.GPU_MEMCPY)]
    assert abs(sum(kernels.class_ns.values()) - kernels.device_ns) <= len(inside) * steps
    assert np.isclose(sum(kernel.share for kernel in kernels.kernels), 1.0) or kernels.device_ns == 0
