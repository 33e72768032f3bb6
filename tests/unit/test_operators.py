"""Tables of operators, kernels, functions and regions of recordings whose truth is written down."""

import json
from dataclasses import replace

import numpy as np
import pytest

from uncork.measure import MissingEvidence, Rank
from uncork.measure.functions import Functions
from uncork.measure.kernels_table import KernelTable
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.measure.regions import Regions
from uncork.pipeline import analyze_recordings
from uncork.tensorcores import is_misaligned, matrix_precision, saves_arithmetic
from uncork.testing import sketch


def rank_of(text: str) -> Rank:
    """Return the rank of a sketched recording."""
    (recording,) = sketch(text)
    return Rank(recording)


def operator(table: OperatorTable, name: str, phase: str = "forward") -> Operator:
    """Return the row of an operator."""
    (found,) = [one for one in table.operators if (one.name, one.phase) == (name, phase)]
    return found


INPUTS = {
    "FORWARD": '{"Input Dims": [[4096], [1024, 1024], [1024, 4096]], "Input type": [T, T, T], "Sequence number": 1}',
    "LEFT": '{"Input Dims": [[4096, 1024], [1024, 1024]], "Input type": [T, T]}',
    "RIGHT": '{"Input Dims": [[1024, 4096], [4096, 1024]], "Input type": [T, T]}',
}
STEP = """
device NVIDIA A100-SXM4-80GB {"computeMajor": 8, "computeMinor": 0}
with shapes stacks memory
steps 4 x 10ms
  main 0ms..9ms train.py(30): step
  main op 0.1ms..2.9ms nn.Module: head
  main 0.2ms..2ms aten::linear {"Sequence number": 1}
  main 0.3ms..1.9ms aten::addmm FORWARD -> stream 7 0.5ms..1.5ms ampere_bf16_s16816gemm_bf16_128x128
  main 0.4ms [memory] {"Bytes": 8388608, "Device Type": 1, "Device Id": 0, "Total Allocated": 1, "Total Reserved": 1}
  backward 3ms..5ms autograd::engine::evaluate_function: AddmmBackward0 {"Sequence number": 1}
  backward 3.1ms..4.9ms AddmmBackward0 {"Sequence number": 1}
  backward 3.2ms..4ms aten::mm LEFT -> stream 7 3.5ms..5.5ms ampere_bf16_s16816gemm_bf16_128x128
  backward 4ms..4.8ms aten::mm RIGHT -> stream 7 5.5ms..6.5ms ampere_bf16_s16816gemm_bf16_256x128
"""
for name, inputs in INPUTS.items():
    STEP = STEP.replace(name, inputs.replace("T,", '"c10::BFloat16",').replace("T]", '"c10::BFloat16"]'))


def test_times_are_means_per_step_forward_and_backward_apart():
    """One addmm of 1 ms and two mm of 2 and 1 ms per step; linear itself launches nothing."""
    table = OperatorTable.of(rank_of(STEP))
    forward, backward = operator(table, "aten::addmm"), operator(table, "aten::mm", "backward")
    assert (forward.device_self_ns, forward.calls, forward.calls_per_step) == (1_000_000, 4, 1.0)
    assert (backward.device_self_ns, backward.calls, backward.calls_per_step) == (3_000_000, 8, 2.0)
    assert operator(table, "aten::linear").device_self_ns == 0
    assert operator(table, "aten::linear").device_total_ns == 1_000_000
    assert operator(table, "aten::linear").cpu_total_ns == 1_800_000
    assert operator(table, "aten::linear").cpu_self_ns == 200_000
    assert (table.device_ns, table.steps, table.step_ns) == (4_000_000, 4, 10_000_000)


def test_backward_parts_know_layer_line_and_sizes():
    """Two gradients with two shapes are two parts of one row, both of the forward operator's layer."""
    table = OperatorTable.of(rank_of(STEP))
    row = operator(table, "aten::mm", "backward")
    assert [part.device_self_ns for part in row.parts] == [2_000_000, 1_000_000]
    assert [dict(part.sizes) for part in row.parts] == [
        {"m": 4096, "n": 1024, "k": 1024},
        {"m": 1024, "n": 1024, "k": 4096},
    ]
    assert {part.module for part in row.parts} == {"head"}
    assert row.place is not None
    assert (row.place.file, row.place.line) == ("train.py", 30)
    assert row.where == "head · train.py:30 step"


def test_work_and_roofline_follow_from_shapes_and_device():
    """2 × 1024 × 1024 × 4096 + bias in 1 ms; an A100 needs 27.5 µs for it at 312 TFLOP/s."""
    row = operator(OperatorTable.of(rank_of(STEP)), "aten::addmm")
    assert row.flop == 2 * 1024 * 1024 * 4096 + 1024 * 4096
    assert row.precision == "bf16"
    assert row.compute_bound
    assert row.roofline_share == pytest.approx(row.flop / 312e12 / 1e-3)
    assert row.memory_bytes == 8388608


def test_rows_are_plain_json_with_units_in_their_names():
    """What the report keeps must survive JSON, parts included."""
    rows = OperatorTable.of(rank_of(STEP)).rows()
    assert json.loads(json.dumps(rows)) == rows
    assert {"device_self_ns", "cpu_total_ns", "memory_bytes", "flop", "file", "line", "module"} <= set(rows[0])
    assert rows[0]["name"] == "aten::mm"
    assert len(rows[0]["parts"]) == 2


def test_faster_than_the_device_is_our_error_and_no_figure():
    """The same product in 10 µs would be 3.4 times the A100's peak."""
    quick = STEP.replace("0.5ms..1.5ms ampere", "0.5ms..0.505ms ampere")
    row = operator(OperatorTable.of(rank_of(quick)), "aten::addmm")
    assert row.over_peak
    assert row.row()["over_peak"] is True
    assert row.row()["roofline_share"] is None


def test_winograd_kernels_and_unknown_devices_have_no_roofline():
    """Winograd needs fewer operations than the formula counts; a device without figures has no roof."""
    assert (
        operator(OperatorTable.of(rank_of(STEP.replace("A100-SXM4-80GB", "Some Device"))), "aten::addmm").roof_ns
        is None
    )
    wino = STEP.replace("ampere_bf16_s16816gemm_bf16_128x128", "winograd_nonfused_bf16")
    assert operator(OperatorTable.of(rank_of(wino)), "aten::addmm").roofline_share is None


def test_places_come_from_the_deep_window_durations_from_the_light_one():
    """Joined by operator, phase and module: the slow deep window must not change a single nanosecond."""
    light = """
steps 2 x 10ms
  main op 0ms..3ms nn.Module: head
  main 0.2ms..2ms aten::mm
  main op 4ms..5ms nn.Module: tail
  main 4.1ms..4.9ms aten::mm
"""
    deep = """
with shapes stacks
steps 1 x 40ms
  main 0ms..39ms net.py(7): forward
  main op 0ms..13ms nn.Module: head
  main 0.2ms..12ms aten::mm {"Input Dims": [[8, 16], [16, 32]], "Input type": ["float", "float"]}
  main op 14ms..25ms nn.Module: tail
  main 14.1ms..24.9ms aten::mm {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}
"""
    (main,), (other,) = sketch(light), sketch(deep)
    parts = {part.module: part for part in operator_parts(Rank(replace(main, deep=other)))}
    assert parts["head"].cpu_self_ns == 1_800_000
    assert parts["tail"].cpu_self_ns == 800_000
    assert parts["head"].flop == 2 * 8 * 16 * 32
    assert parts["tail"].flop == 2 * 8 * 16 * 4
    assert parts["head"].place is not None
    assert parts["head"].place.file == "net.py"


def test_launches_without_device_records_are_noticed():
    """Host times of operators are then no measure of what computes."""
    table = OperatorTable.of(
        rank_of("device Tesla T4\nsteps 2 x 10ms\n  main 0ms..9ms aten::mm\n  main 1ms..2ms cudaLaunchKernel")
    )
    assert table.unseen_device
    assert not table.on_device


def test_without_host_operators_there_is_no_table():
    """Kernels alone have no operator, module or line."""
    rank = rank_of("device Tesla T4\nstream 7 0ms..1ms volta_sgemm_128x64_nn")
    with pytest.raises(MissingEvidence) as lack:
        OperatorTable.of(rank)
    assert lack.value.what == ("host",)


def test_kernels_are_summed_by_class_and_precision():
    """Per step 6 ms of fp32 products, 1 ms of bf16 convolution, 2 ms of elementwise work."""
    table = KernelTable.of(
        rank_of("""
device NVIDIA A100-SXM4-80GB
steps 2 x 10ms
  main 0ms..1ms aten::mm -> stream 7 0.1ms..6.1ms ampere_sgemm_128x64_tn
  main 1ms..2ms aten::conv2d -> stream 7 6.1ms..7.1ms cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_align1
  main 2ms..3ms aten::add -> stream 7 7.1ms..9.1ms vectorized_elementwise_kernel
""")
    )
    assert dict(table.precision_ns) == {"fp32": 6_000_000, "bf16": 1_000_000}
    assert table.class_ns["elementwise"] == 2_000_000
    assert table.misaligned_ns == 1_000_000
    assert table.device_ns == 9_000_000
    assert table.share("gemm") == pytest.approx(0.6)
    assert (table.kernels[0].op, table.kernels[0].calls, table.kernels[0].mean_ns) == ("aten::mm", 2, 6_000_000)
    assert sum(kernel.share for kernel in table.kernels) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kernel", "precision"),
    [
        ("ampere_sgemm_128x64_tn", "fp32"),
        ("volta_scudnn_128x64_relu_interior_nn_v1", "fp32"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_nn_align1>", "fp32"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align4>", "tf32"),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", "tf32"),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", "fp16"),
        ("turing_h1688gemm_128x128_ldg8_nn", "fp16"),
        ("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1", "bf16"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256", "bf16"),
        ("Cijk_Ailk_Bjlk_HHS_BH_MT128x64x32", "fp16"),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16", "fp32"),
        ("nvjet_tst_128x64_64x11_2x4_v_bz_TNT", "bf16"),
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", "fp8"),
        ("void somebodys_own_kernel(int)", ""),
    ],
)
def test_kernel_names_tell_their_precision(kernel: str, precision: str):
    """Names that cuBLAS, cuDNN, CUTLASS and rocBLAS give."""
    assert matrix_precision(kernel) == precision


def test_kernel_names_tell_misalignment_and_winograd():
    """Only half-precision kernels want 8 elements at a time."""
    assert is_misaligned("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1")
    assert not is_misaligned("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8")
    assert not is_misaligned("cutlass_80_simt_sgemm_128x128_8x4_nn_align1")
    assert saves_arithmetic("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>")
    assert not saves_arithmetic("ampere_sgemm_128x64_tn")


def test_functions_come_from_cprofile_or_from_the_traces_frames():
    """Own time leaves out what a function calls; the user's functions are told from torch's."""
    profiled = Functions.of(
        rank_of("""
main 0ms..1ms aten::mm
function train.py:30 step 4 x 2ms 40ms
function ~:0 <built-in> 400 x 20ms 20ms
""")
    )
    traced = Functions.of(
        rank_of("""
with stacks
steps 1 x 10ms
  main 0ms..10ms train.py(30): step
  main 1ms..7ms torch/nn/functional.py(99): relu
""")
    )
    assert profiled.source == "cprofile"
    assert [(one.name, one.self_ns) for one in profiled.users()] == [("step", 2_000_000)]
    assert traced.source == "trace"
    times = {one.name: (one.self_ns, one.total_ns, one.users) for one in traced.functions}
    assert times == {"step": (4_000_000, 10_000_000, True), "relu": (6_000_000, 6_000_000, False)}


def test_r1_5_regions_that_users_name_have_their_time_on_host_and_device():
    """record_function regions, and none that PyTorch opens itself."""
    (region,) = Regions.of(
        rank_of("""
device Tesla T4
steps 2 x 10ms
  main region 0ms..4ms my loss
  main 1ms..2ms aten::mm -> stream 7 1.5ms..4.5ms volta_sgemm
  main 5ms..6ms Optimizer.step#SGD.step
  main region 7ms..8ms uncork: between steps
""")
    ).regions
    assert (region.name, region.calls, region.host_ns, region.device_ns) == ("my loss", 2, 4_000_000, 3_000_000)


def test_regions_inside_others_have_a_row_for_each_level():
    """A region inside itself is no time more: 8 ms hold 6 and 1, the 6 hold 2 of the same name; own times add up to 8.

    The kernel of 3 ms counts for the levels that hold its launch: all but the last.
    """
    found = Regions.of(
        rank_of("""
device Tesla T4
steps 2 x 10ms
  main region 0ms..8ms epoch
  main region 1ms..7ms walk
  main 1.5ms..2ms aten::mm -> stream 7 2ms..5ms volta_sgemm
  main region 3ms..5ms walk
  main region 7ms..8ms loss
""")
    )
    ms = 1_000_000
    assert [(one.name, one.inside, one.host_ns, one.host_self_ns, one.device_ns) for one in found.regions] == [
        ("epoch", "", 8 * ms, 1 * ms, 3 * ms),
        ("walk", "epoch", 6 * ms, 4 * ms, 3 * ms),
        ("walk", "epoch › walk", 2 * ms, 2 * ms, 0),
        ("loss", "epoch", 1 * ms, 1 * ms, 0),
    ]
    assert {row["calls_per_step"] for row in found.rows()} == {1}


def test_regions_without_end_name_the_innermost_around_them():
    """Twelve regions of a function that calls itself are twelve rows; the last is inside the nearest eight."""
    nested = "\n".join(f"  main region {0.1 * one:.1f}ms..9ms f{one}" for one in range(12))
    found = Regions.of(rank_of(f"steps 1 x 10ms\n{nested}\n"))
    assert [one.name for one in found.regions] == [f"f{one}" for one in range(12)]
    assert found.regions[-1].inside == " › ".join(f"f{one}" for one in range(3, 11))


NAMED = """
device Tesla T4
steps 2 x 10ms
  main region 0ms..9.9ms my loss
  main 0.1ms..8ms nn.Module: head
  main 1ms..2ms aten::mm -> stream 7 1.5ms..4.5ms volta_sgemm
  main 8.2ms..9ms aten::bmm -> stream 7 8.3ms..9.9ms volta_sgemm
  main region 9.91ms..10ms Optimizer.step#SGD.step
  main 9.92ms..9.99ms aten::add_
"""


def test_r1_5_a_users_region_is_the_place_of_what_no_module_holds():
    """Inside a module the module is the place; outside of any the region; a library's own region is none."""
    rank = rank_of(NAMED)
    places = {part.name: part.module for part in operator_parts(rank)}
    assert (places["aten::mm"], places["aten::bmm"], places["aten::add_"]) == ("head", "my loss", None)


def test_r1_5_findings_name_the_users_region():
    """A recording without modules and stacks still says in which of the user's parts the operator is."""
    report = analyze_recordings(sketch(NAMED.replace("  main 0.1ms..8ms nn.Module: head\n", "")))
    (finding,) = [one for one in report.findings if one.rule == "dominant-operator" and one.location.op == "aten::mm"]
    assert finding.location.module == "my loss"


def test_all_operators_own_times_add_up_on_a_real_trace(shared):
    """Whatever is grouped, joined and cut: parts hold each operator's own time once."""
    from uncork import readers

    (recording,) = readers.read(shared / "corpus" / "recordings" / "cpu-2.13" / "convnet_full.json.gz")
    rank = Rank(recording)
    tree, steps = rank.calltree, rank.timeline.steps
    inside = tree.is_op & (tree.host.start_ns >= steps.start_ns[0]) & (tree.host.start_ns < steps.end_ns[-1])
    assert sum(part.cpu_self_ns for part in operator_parts(rank)) == int(np.sum(tree.op_self_ns[inside]))


def test_operators_belong_to_their_step_though_the_device_is_far_behind():
    """Host steps of 1 ms with 5 ms of device work each: the device bounds steps, the host's marks their operators."""
    text = "device Tesla T4\n"
    for step in range(4):
        start = 4 * step + 0.6
        text += f"steps 1 x 1ms\n  main 0ms..0.5ms aten::mm -> stream 7 {start:.1f}ms..{start + 5:.1f}ms volta_sgemm\n"
    table = OperatorTable.of(rank_of(text))
    row = operator(table, "aten::mm")
    assert row.calls == 4
    assert row.device_self_ns == 5_000_000
    assert table.share(row) == pytest.approx(1.0, abs=0.05)
