"""Loops over the pieces of a tensor: which calls belong to one, and what it costs."""

import pytest

from tests.unit.rule_outcomes import clear, found

RULE = "python-loop-over-tensor"


def test_a_loaders_own_indexing_is_no_loop_of_the_program():
    """TensorDataset takes 200 rows out of a tensor for each batch; that is data loading, and the rest is no loop."""
    rows = """
with stacks
steps 4 x 10ms
  main 0ms..9.9ms train.py(30): step
  main 0ms..4ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main 0.1ms..0.11ms x200 every 19us aten::select
  main 5ms..9ms aten::mm
"""
    assert clear(RULE, rows)


def test_what_another_operator_takes_out_is_no_loop_of_the_program():
    """Each `aten::histc` reads two numbers off: nobody goes through a tensor, however many layers are counted."""
    rows = """
with stacks
steps 4 x 10ms
  main 0ms..9.9ms train.py(30): on_train_batch_end
  main 0ms..40us x200 every 48us aten::histc
  main 5us..10us x200 every 48us aten::item
  main 12us..17us x200 every 48us aten::item
"""
    assert clear(RULE, rows)
    assert found(RULE, rows.replace("aten::histc", "metric.py(3): read"))


def test_only_what_runs_in_each_turn_counts_for_a_loop():
    """100 turns of 50 µs beside one product of 3 ms at the same place: 5 ms of loop, not 8."""
    one = found(
        RULE,
        """
with stacks
steps 4 x 10ms
  main 0ms..9ms train.py(30): step
  main 0ms..20us x100 every 50us aten::select
  main 20us..50us x100 every 50us aten::add
  main 5.5ms..8.5ms aten::mm
""",
    )
    assert one.cost_ns_per_step == 5_000_000


def test_a_loop_costs_its_backward_pass_too():
    """100 turns of 50 µs forward and of 20 µs backward, 10 µs apart: without the loop 5, 2 and 1 ms go."""
    one = found(
        RULE,
        """
with stacks
steps 4 x 10ms
  main 0ms..9ms train.py(30): step
  main 0ms..20us x100 every 50us aten::select {"Sequence number": 7}
  main 20us..50us x100 every 50us aten::add {"Sequence number": 8}
  main 5.5ms..5.52ms x100 every 30us autograd::engine::evaluate_function: SelectBackward0 {"Sequence number": 7}
""",
    )
    assert one.cost_ns_per_step == pytest.approx(7_990_000)  # 99 gaps


def test_a_turn_of_a_loop_may_take_several_pieces():
    """40 turns take six pieces each, and ask once: 240 x 10 µs, 40 x 5 µs, and what is between, up to 4790 µs."""
    one = found(
        RULE,
        """
with stacks
steps 4 x 10ms
  main 0ms..9ms train.py(30): step
  main 0us..10us x240 every 20us aten::select
  main 10us..15us x40 every 120us aten::any
""",
    )
    assert one.cost_ns_per_step == 4_790_000


def test_of_a_module_without_lines_only_what_is_called_about_as_often_is_its_loop():
    """240 x 10 µs of taking out, and their part of the 2190 µs between 280 calls; the 40 others may be anything."""
    one = found(
        RULE,
        """
steps 4 x 10ms
  main region 0ms..9ms nn.Module: Net
  main 0us..10us x240 every 20us aten::select
  main 10us..15us x40 every 120us aten::any
""",
    )
    assert one.cost_ns_per_step == pytest.approx(2_400_000 + 2_190_000 * 240 / 280, abs=1)


def test_a_loop_in_a_backward_function_costs_what_that_function_takes():
    """A node of 9 ms calls 200 operators for 2 ms of it: 201 calls share its 9 ms, and 200 of them are the loop's."""
    one = found(
        RULE,
        """
with stacks
steps 4 x 10ms
  main 0ms..9.9ms train.py(30): step
  main 0ms..9ms QuantizeBackward {"Sequence number": 5}
  main 0ms..8.99ms ops.py(12): backward
  main 20us..30us x100 every 80us aten::select
  main 40us..50us x100 every 80us aten::any
""",
    )
    assert one.cost_ns_per_step == pytest.approx(9e6 * 200 / 201, abs=1)


def test_what_a_loop_takes_is_not_told_a_second_time():
    """A loop of 100 turns with two calls of 10 µs, beside 200 other calls of 10 µs: each has half of all calls.

    These are 4 ms, and the short gaps between them 1.99, 0.21 and 1.99. Where the loop is all there is, neither tiny
    operators nor compiling are told.
    """
    text = """
with stacks
steps 4 x 10ms
  main 0ms..4.1ms loss.py(30): pieces
  main 0ms..10us x100 every 40us aten::select
  main 20us..30us x100 every 40us aten::relu
"""
    more = """  main 4.2ms..8.2ms model.py(8): forward
  main 4.2ms..4.21ms x200 every 20us aten::tanh
"""
    loop, tiny = found(RULE, text + more), found("tiny-operators", text + more)
    assert (loop.location.file, tiny.location.file) == ("loss.py", "model.py")
    assert loop.cost_ns_per_step == tiny.cost_ns_per_step == (4_000_000 + 4_190_000) // 2
    assert tiny.params["callers"] == "model.py:8 (forward) 50 %, loss.py:30 (pieces) 50 %"
    assert clear("tiny-operators", text)
    assert clear("compile-would-pay", text)
