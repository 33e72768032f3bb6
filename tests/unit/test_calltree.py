"""Who called whom: operators, modules, lines and phases of recordings whose truth is written down."""

import numpy as np
import pytest

from uncork.calltree import PHASES, CallTree
from uncork.places import Place
from uncork.testing import sketch
from uncork.timeline import Timeline


def tree_of(text: str) -> CallTree:
    """Return the call tree of a sketched recording."""
    (recording,) = sketch(text)
    return CallTree(Timeline(recording))


def only(tree: CallTree, name: str) -> int:
    """Return the one host slice of that name."""
    names = tree.timeline.events.names(tree.host.row)
    (found,) = [index for index, one in enumerate(names) if one == name]
    return found


def module_of(tree: CallTree, name: str) -> str | None:
    """Return the module path of the one slice of that name."""
    index = int(tree.module[only(tree, name)])
    return tree.modules[index] if index >= 0 else None


def place_of(tree: CallTree, name: str) -> Place | None:
    """Return the user's place of the one slice of that name."""
    index = int(tree.place[only(tree, name)])
    return tree.places[index] if index >= 0 else None


STACKED = """
with stacks
steps 1 x 10ms
  main 0ms..10ms train.py(5): <module>
  main 0.1ms..9.9ms train.py(40): step
  main 0.2ms..4ms nn.Module: Net_0
  main 0.3ms..3.9ms net.py(10): forward
  main 0.4ms..3ms nn.Module: Linear_1
  main 0.5ms..2.9ms torch/nn/modules/linear.py(114): forward
  main 0.6ms..2.8ms <built-in function linear>
  main 0.7ms..2.7ms aten::linear {"Sequence number": 7}
  main 0.8ms..2.6ms aten::addmm {"Sequence number": 7}
  main 3.2ms..3.6ms aten::relu {"Sequence number": 8}
  main 5ms..5.5ms autograd::engine::evaluate_function: ReluBackward0 {"Sequence number": 8}
  main 6ms..7ms autograd::engine::evaluate_function: AddmmBackward0 {"Sequence number": 7}
  main 6.1ms..6.9ms AddmmBackward0 {"Sequence number": 7}
  main 6.2ms..6.8ms aten::mm
  main 7ms..7.5ms autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
  main 7.1ms..7.2ms aten::detach
  main 8ms..8.5ms autograd::engine::evaluate_function: SumBackward0 {"Sequence number": 900}
"""


def test_the_users_line_is_the_innermost_frame_outside_torch():
    """aten::addmm runs below torch's linear.py, but net.py's forward asked for it."""
    tree = tree_of(STACKED)
    assert place_of(tree, "aten::addmm") == Place("net.py", 10, "forward", exact=False)
    assert module_of(tree, "aten::addmm") == "Net_0.Linear_1"
    assert module_of(tree, "aten::relu") == "Net_0"


def test_backward_work_has_module_and_line_of_its_forward_operator():
    """Joined by sequence number, not by what lies around it (train.py's step, which called backward)."""
    tree = tree_of(STACKED)
    assert module_of(tree, "aten::mm") == "Net_0.Linear_1"
    assert place_of(tree, "aten::mm") == Place("net.py", 10, "forward", exact=False)
    assert tree.phase[only(tree, "aten::mm")] == 1
    assert tree.phase[only(tree, "aten::addmm")] == 0


def test_accumulate_grad_belongs_with_the_node_before_it():
    """It has no forward operator of its own."""
    assert module_of(tree_of(STACKED), "aten::detach") == "Net_0.Linear_1"


def test_a_node_whose_forward_is_not_recorded_has_no_place():
    """Better no line than the line of loss.backward()."""
    tree = tree_of(STACKED)
    name = "autograd::engine::evaluate_function: SumBackward0"
    assert place_of(tree, name) is None
    assert module_of(tree, name) is None


def test_the_call_site_gives_the_exact_line():
    """Torch 2.14 writes from which line a call was made; before, a frame has its function's first line only."""
    tree = tree_of("""
with stacks
steps 1 x 10ms
  main 0ms..9ms net.py(10): forward
  main 1ms..4ms <built-in function conv2d> {"CallFrom": "net.py:13"}
  main 1.1ms..3.9ms aten::conv2d
  main 5ms..8ms torch/nn/functional.py(99): relu {"CallFrom": "net.py:14"}
  main 5.1ms..7.9ms <built-in function relu> {"CallFrom": "torch/nn/functional.py:120"}
  main 5.2ms..7.8ms aten::relu
""")
    assert place_of(tree, "aten::conv2d") == Place("net.py", 13, "forward", exact=True)
    assert place_of(tree, "aten::relu") == Place("net.py", 14, "forward", exact=True)


def test_the_recorders_regions_give_attribute_paths():
    """They come before Kineto's classes and numbers, which do not say which layer it is."""
    tree = tree_of("""
steps 1 x 10ms
  main op 0ms..9ms nn.Module: encoder
  main op 1ms..4ms nn.Module: encoder.layers.3.attn
  main 1.1ms..3.9ms aten::bmm
  main 5ms..8ms aten::add
""")
    assert module_of(tree, "aten::bmm") == "encoder.layers.3.attn"
    assert module_of(tree, "aten::add") == "encoder"


@pytest.mark.parametrize("outermost_first", [False, True])
def test_call_stacks_of_old_versions_are_read_in_either_order(outermost_first: bool):
    """Torch 1.8 writes the innermost frame first, 1.12 the outermost; both mean model.py's forward."""
    stack = ["torch/nn/modules/conv.py(395): forward", "model.py(12): forward", "train.py(30): <module>"]
    text = ";".join(reversed(stack) if outermost_first else stack)
    tree = tree_of(f"""
steps 1 x 10ms
  main 0ms..4ms aten::conv2d {{"Call stack": "{text}"}}
""")
    assert place_of(tree, "aten::conv2d") == Place("model.py", 12, "forward", exact=True)


def test_a_region_opened_by_a_with_statement_holds_what_runs_in_it():
    """It starts inside the frames of __enter__ and outlives them; it must not be cut to their end."""
    tree = tree_of("""
with stacks
steps 1 x 10ms
  main 0ms..10ms train.py(40): step
  main 1ms..1.4ms torch/autograd/profiler.py(750): __enter__
  main 1.1ms..1.3ms <built-in function _record_function_enter_new>
  main 1.2ms..6ms Optimizer.step#SGD.step
  main 2ms..3ms aten::add_
  main 5.9ms..6.2ms torch/autograd/profiler.py(760): __exit__
  main 7ms..8ms aten::mul
""")
    assert tree.phase[only(tree, "aten::add_")] == 3
    assert tree.phase[only(tree, "aten::mul")] == 0


def test_recomputed_forward_work_is_told_from_backward_work():
    """An operator that carries a number inside a node builds a graph anew: a checkpoint runs forward again."""
    tree = tree_of("""
steps 1 x 10ms
  main 0ms..1ms aten::addmm {"Sequence number": 1}
  main 1ms..2ms aten::relu {"Sequence number": 2}
  main 2ms..3ms aten::sum {"Sequence number": 3}
  main 3ms..3.5ms autograd::engine::evaluate_function: SumBackward0 {"Sequence number": 3}
  main 3.5ms..4ms autograd::engine::evaluate_function: ReluBackward0 {"Sequence number": 2}
  main 4ms..9ms autograd::engine::evaluate_function: AddmmBackward0 {"Sequence number": 1}
  main 4.1ms..6ms aten::linear {"Sequence number": 4}
  main 4.2ms..5.9ms aten::mul
  main 6ms..8ms AddmmBackward0 {"Sequence number": 1}
  main 6.1ms..7.9ms aten::mm
""")
    assert tree.phase[only(tree, "aten::linear")] == 2
    assert tree.phase[only(tree, "aten::mul")] == 2
    assert tree.phase[only(tree, "aten::mm")] == 1


def test_device_time_and_self_times_add_up():
    """Each kernel counts for one operator; operators' own host times sum to the outermost operators' durations."""
    tree = tree_of("""
device Tesla T4
steps 2 x 10ms
  main 0ms..4ms aten::linear
  main 0.5ms..3.5ms aten::addmm -> stream 7 1ms..5ms volta_sgemm -> stream 7 5ms..6ms splitKreduce_kernel
  main 5ms..6ms aten::relu -> stream 7 6ms..7ms vectorized_elementwise_kernel
""")
    assert int(tree.device_ns.sum()) == 2 * 6_000_000
    below = tree.with_children(tree.device_ns)
    names = np.array(tree.timeline.events.names(tree.host.row))
    assert below[names == "aten::linear"].tolist() == [5_000_000, 5_000_000]
    assert tree.device_ns[names == "aten::linear"].tolist() == [0, 0]
    assert int(tree.op_self_ns.sum()) == 2 * (4_000_000 + 1_000_000)


def test_numbers_of_two_forward_threads_are_kept_apart():
    """Sequence numbers count per thread: the same number on another thread is another operator."""
    tree = tree_of("""
steps 1 x 10ms
  main op 0ms..4ms nn.Module: left
  main 0.1ms..1ms aten::mul {"Sequence number": 1}
  main 1ms..2ms aten::relu {"Sequence number": 2}
  thread other op 0ms..4ms nn.Module: right
  thread other 0.1ms..1ms aten::sin {"Sequence number": 1}
  backward 5ms..6ms autograd::engine::evaluate_function: ReluBackward0 {"Sequence number": 2}
  backward 6ms..7ms autograd::engine::evaluate_function: MulBackward0 {"Sequence number": 1}
""")
    assert module_of(tree, "autograd::engine::evaluate_function: MulBackward0") == "left"
    assert module_of(tree, "autograd::engine::evaluate_function: ReluBackward0") == "left"


@pytest.mark.parametrize(
    ("recording", "least"),
    [("cpu-2.13/gpt_module_regions", 0.95), ("cpu-2.13/convnet_stack", 0.99), ("cpu-2.0.1/smallcnn_stack", 0.95)],
)
def test_real_backward_work_finds_its_module(shared, recording: str, least: float):
    """The capture study attributed 96 to 100 % of backward self time by hand-written chains."""
    from uncork import readers

    (one,) = readers.read(shared / "corpus" / "recordings" / f"{recording}.json.gz")
    tree = CallTree(Timeline(one))
    backward = tree.is_op & (tree.phase == 1)
    known = backward & (tree.module >= 0)
    assert tree.op_self_ns[known].sum() >= least * tree.op_self_ns[backward].sum()


def test_real_checkpointing_is_recognised(shared):
    """gpt_checkpoint_autocast recomputes its blocks; gpt_light, the same net without checkpoints, nothing."""
    from uncork import readers

    found = {}
    for name in ("gpt_checkpoint_autocast", "gpt_light"):
        (one,) = readers.read(shared / "corpus" / "recordings" / "cpu-2.13" / f"{name}.json.gz")
        tree = CallTree(Timeline(one))
        found[name] = int((tree.is_op & (tree.phase == 2)).sum())
    assert found["gpt_checkpoint_autocast"] > 100
    assert found["gpt_light"] == 0


def test_compiled_code_belongs_to_its_region_backward_included():
    """Modules are gone inside compiled code; generated kernels of both passes name the region instead."""
    tree = tree_of("""
device Tesla T4
steps 1 x 10ms
  main op 0ms..4ms Torch-Compiled Region: 0/0
  main 0.1ms..3.9ms CompiledFunction {"Sequence number": 1}
  main 0.5ms..1ms triton_poi_fused_relu_0 -> stream 7 0.8ms..1.8ms triton_poi_fused_relu_0
  backward 5ms..8ms autograd::engine::evaluate_function: CompiledFunctionBackward {"Sequence number": 1}
  backward 5.1ms..7.9ms CompiledFunctionBackward {"Sequence number": 1}
  backward 5.2ms..5.8ms triton_red_fused_sum_1 -> stream 7 5.5ms..6.5ms triton_red_fused_sum_1
""")
    names = np.array(tree.timeline.events.names(tree.host.row))
    launchers = tree.device_ns > 0
    assert {tree.modules[index] for index in tree.module[launchers]} == {"Torch-Compiled Region: 0/0"}
    assert set(names[launchers]) == {"triton_poi_fused_relu_0", "triton_red_fused_sum_1"}


def test_what_an_optimizers_closure_does_is_not_its_update():
    """Lightning and L-BFGS call the loss inside the step: the update begins behind the last backward node, at 5 ms."""
    tree = tree_of("""
steps 1 x 10ms
  main 0ms..9ms Optimizer.step#Adam.step
  main 0.1ms..0.2ms Optimizer.zero_grad#Adam.zero_grad
  main 0.12ms..0.15ms aten::zero_
  main 1ms..2ms aten::addmm
  main 3ms..5ms autograd::engine::evaluate_function: AddmmBackward0
  main 3.5ms..4.5ms aten::mm
  main 6ms..7ms aten::lerp_
  main 9.2ms..9.4ms aten::add
""")
    names = ("aten::zero_", "aten::addmm", "aten::mm", "aten::lerp_", "aten::add")
    assert {name: PHASES[tree.phase[only(tree, name)]] for name in names} == {
        "aten::zero_": "optimizer",
        "aten::addmm": "forward",
        "aten::mm": "backward",
        "aten::lerp_": "optimizer",
        "aten::add": "forward",
    }


def test_a_second_derivative_among_first_ones_is_no_recomputation():
    """Inner steps of meta-learning build a graph in some backward passes; nothing is computed again."""
    tree = tree_of("""
steps 1 x 10ms
  main 0ms..1ms aten::mm {"Sequence number": 1}
  main 2ms..3ms autograd::engine::evaluate_function: MmBackward0 {"Sequence number": 1}
  main 2.1ms..2.9ms MmBackward0 {"Sequence number": 1}
  main 2.2ms..2.8ms aten::mm {"Sequence number": 2}
  main 3ms..4ms autograd::engine::evaluate_function: AddBackward0 {"Sequence number": 3}
  main 3.1ms..3.9ms AddBackward0 {"Sequence number": 3}
  main 3.2ms..3.8ms aten::add {"Sequence number": 4}
  main 4ms..5ms autograd::engine::evaluate_function: AddBackward0 {"Sequence number": 5}
  main 5ms..6ms autograd::engine::evaluate_function: MulBackward0 {"Sequence number": 6}
  main 6ms..7ms autograd::engine::evaluate_function: MulBackward0 {"Sequence number": 7}
""")
    assert not tree.recomputed.any()
