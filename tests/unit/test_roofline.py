"""FLOP and bytes by hand and against another analyser; the roof over them."""

import ast
import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from uncork.formulas import sizes_of, work_of
from uncork.hardware import peaks
from uncork.roofline import roof

BF16, FP32, SCALAR, LIST = "c10::BFloat16", "float", "Scalar", "ScalarList"


def test_a_matrix_product_is_2mnk_and_moves_each_matrix_once():
    """2 × 8944 × 2816 × 1024 = 51.58 GFLOP; (MK + KN + MN) × 2 bytes."""
    work = work_of("aten::mm", [[8944, 1024], [1024, 2816]], [BF16, BF16], ["", ""])
    assert work is not None
    assert work.flop == 2 * 8944 * 2816 * 1024 == 51_581_550_592
    assert work.moved_bytes == 2 * (8944 * 1024 + 1024 * 2816 + 8944 * 2816)
    assert (work.matrix, work.precision, dict(work.sizes)) == (True, "bf16", {"m": 8944, "n": 2816, "k": 1024})


def test_addmm_adds_its_bias_and_bmm_multiplies_by_the_batch():
    """The bias of one row is read once and added M × N times."""
    addmm = work_of(
        "aten::addmm", [[20], [10, 30], [30, 20], [], []], [FP32] * 3 + [SCALAR] * 2, ["", "", "", "1", "1"]
    )
    bmm = work_of("aten::bmm", [[4, 10, 30], [4, 30, 20]], [FP32, FP32], ["", ""])
    assert addmm is not None
    assert bmm is not None
    assert addmm.flop == 2 * 10 * 20 * 30 + 10 * 20
    assert addmm.moved_bytes == 4 * (10 * 30 + 30 * 20 + 10 * 20 + 20)
    assert bmm.flop == 4 * 2 * 10 * 20 * 30
    assert bmm.sizes["batch"] == 4


CONV = [[2, 8, 10, 12], [16, 4, 3, 3], [16], [], [], [], [], [], []]
CONV_TYPES = [FP32, FP32, FP32, LIST, LIST, LIST, SCALAR, LIST, SCALAR]


def test_a_convolution_counts_outputs_by_stride_padding_groups_and_bias():
    """Stride 2, padding 1: 5 × 6 outputs of 16 channels; two groups of 4 input channels."""
    work = work_of(
        "aten::convolution", CONV, CONV_TYPES, ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]
    )
    assert work is not None
    outputs = 2 * 16 * 5 * 6
    assert work.flop == 2 * 4 * 3 * 3 * outputs + outputs
    assert work.moved_bytes == 4 * (2 * 8 * 10 * 12 + 16 * 4 * 3 * 3 + 16 + outputs)
    assert work.sizes["kernel"] == "3×3"
    assert work.sizes["stride"] == "2×2"
    assert (work.sizes["channels_in"], work.sizes["channels_out"], work.sizes["groups"]) == (8, 16, 2)


def test_a_transposed_convolution_spreads_its_inputs():
    """ConvTranspose2d(8, 6, 3, stride=2): (10 − 1) × 2 + 3 = 21 rows; each input value meets 6 × 9 weights."""
    dims = [[2, 8, 10, 12], [8, 6, 3, 3], [], [], [], [], [], [], []]
    types = [FP32, FP32, "", LIST, LIST, LIST, SCALAR, LIST, SCALAR]
    work = work_of("aten::convolution", dims, types, ["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"])
    assert work is not None
    assert work.flop == 2 * 6 * 9 * 2 * 8 * 10 * 12
    assert work.moved_bytes == 4 * (2 * 8 * 10 * 12 + 8 * 6 * 9 + 2 * 6 * 21 * 25)


def test_only_the_gradients_asked_for_are_counted():
    """The first layer needs none for its input: half the work of the usual two."""
    dims = [[2, 16, 5, 6], [2, 8, 10, 12], [16, 8, 3, 3], [], [], [], [], [], [], [], []]
    types = [FP32] * 3 + [LIST] * 8
    usual = ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[True, True, False]"]
    both = work_of("aten::convolution_backward", dims, types, usual)
    one = work_of("aten::convolution_backward", dims, types, [*usual[:-1], "[False, True, False]"])
    assert both is not None
    assert one is not None
    assert both.flop == 2 * (2 * 8 * 9 * 2 * 16 * 5 * 6) == 2 * one.flop


def test_attention_counts_pairs_half_of_them_when_causal():
    """Two products over every pair of positions; with a causal mask over half of the square."""
    dims, types = [[2, 4, 100, 64]] * 3 + [[], []], [BF16] * 3 + [SCALAR] * 2
    full = work_of("aten::_scaled_dot_product_flash_attention", dims, types, ["", "", "", "0.", "False"])
    half = work_of("aten::_scaled_dot_product_flash_attention", dims, types, ["", "", "", "0.", "True"])
    assert full is not None
    assert half is not None
    assert full.flop == 2 * (2 * 4 * 100 * 100 * 64) * 2
    assert half.flop * 2 == full.flop
    assert full.moved_bytes == 2 * 4 * (2 * 4 * 100 * 64)
    assert (full.sizes["query_length"], full.sizes["heads"]) == (100, 4)


def test_attentions_backward_computes_the_scores_again():
    """Five products instead of two: 2.5 times the forward pass."""
    dims, types = [[2, 4, 100, 64]] * 5, [BF16] * 5
    back = work_of("aten::_scaled_dot_product_flash_attention_for_cpu_backward", dims, types, [""] * 5)
    assert back is not None
    assert back.flop == 5 * 2 * 2 * 4 * 100 * 100 * 64


def test_heads_may_lie_behind_the_length():
    """_flash_attention_forward has (batch, length, heads, size); packed sequences have no lengths to count."""
    dims = [[2, 100, 4, 64]] * 3 + [[]] * 6
    work = work_of("aten::_flash_attention_forward", dims, [BF16] * 3, [""] * 9)
    assert work is not None
    assert (work.sizes["heads"], work.sizes["query_length"]) == (4, 100)
    assert work_of("aten::_flash_attention_forward", [[200, 4, 64]] * 3, [BF16] * 3, [""] * 9) is None


def test_elementwise_work_reads_its_tensors_and_writes_one():
    """A broadcast operand is read once; an out= tensor is no input; comparisons write bytes."""
    types = [FP32, FP32, FP32]
    add = work_of("aten::add", [[4, 100], [100], [4, 100]], types, ["", "", ""])
    less = work_of("aten::lt", [[4, 100], [100]], types[:2], ["", ""])
    assert add is not None
    assert less is not None
    assert (add.flop, add.moved_bytes) == (400, 4 * (400 + 100) + 4 * 400)
    assert less.moved_bytes == 4 * (400 + 100) + 400


@pytest.mark.parametrize(
    ("op", "dims", "types"),
    [
        ("aten::mm", None, []),
        ("aten::mm", [], []),
        ("aten::mm", [[3, 4]], [FP32]),
        ("aten::mm", [["x", 4], [4, 5]], [FP32, FP32]),
        ("aten::convolution", CONV, CONV_TYPES),
        ("aten::convolution", [[1], [2]], [FP32, FP32]),
        ("aten::never_heard_of", [[3, 4]], [FP32]),
        ("aten::add", [], []),
    ],
)
def test_what_is_not_recorded_has_no_work(op: str, dims: object, types: object):
    """Missing shapes, missing parameters and nonsense give no figure and no fault."""
    assert work_of(op, dims, types, []) is None


@pytest.mark.parametrize("side", [10**18, 1 << 25, -4])
def test_shapes_that_no_tensor_has_are_no_work(side: int):
    """A damaged size would fill numbers of 64 bits; 2^25 × 2^25 floats are 4 PiB, and nothing has a side below 0."""
    assert work_of("aten::mm", [[side, side], [side, side]], ["float", "float"], []) is None


def test_shapes_alone_tell_a_convolutions_kernel_and_channels():
    """Before torch 2.0 stride and padding are not recorded; what is known is still shown."""
    assert sizes_of("aten::mkldnn_convolution", [[5, 64, 56, 56], [128, 64, 3, 3], [], []]) == {
        "kernel": "3×3", "channels_in": 64, "channels_out": 128, "batch": 5, "input": "56×56",
    }  # fmt: skip
    assert sizes_of("aten::mm", [[5, 64], [64, 3]]) == {}


def test_the_roof_is_the_slower_of_arithmetic_and_memory():
    """An A100 does 312 TFLOP/s in bf16 and moves 2039 GB/s: a square product is bound by the first, a thin one not."""
    known = peaks("NVIDIA A100-SXM4-80GB")
    assert known is not None
    square = work_of("aten::mm", [[4096, 4096], [4096, 4096]], [BF16, BF16], ["", ""])
    thin = work_of("aten::mm", [[4096, 4096], [4096, 1]], [BF16, BF16], ["", ""])
    assert square is not None
    assert thin is not None
    high, low = roof(square, known), roof(thin, known)
    assert high is not None
    assert low is not None
    assert high.compute_bound
    assert high.ns == pytest.approx(2 * 4096**3 / 312e12 * 1e9)
    assert not low.compute_bound
    assert low.ns == pytest.approx(2 * (4096 * 4096 + 2 * 4096) / 2039e9 * 1e9)


def test_the_precision_of_the_kernel_decides_the_peak():
    """The same fp32 tensors: 19.5 TFLOP/s outside tensor cores, 156 in TF32; a V100 has no TF32 at all."""
    work = work_of("aten::mm", [[4096, 4096], [4096, 4096]], [FP32, FP32], ["", ""])
    known, old = peaks("NVIDIA A100-SXM4-80GB"), peaks("Tesla V100-SXM2-16GB")
    assert work is not None
    assert known is not None
    assert old is not None
    plain, tensor = roof(work, known), roof(work, known, "tf32")
    assert plain is not None
    assert tensor is not None
    assert plain.ns / tensor.ns == pytest.approx(156 / 19.5)
    assert roof(work, old, "tf32") is None


CSV_LIMIT = 1 << 30
EXPLAINED = {
    # (kind, name): why ours differs; docs/roofline.md says the same.
    ("CONV_bwd", "aten::convolution_backward"): "only the gradients asked for",
    ("UnaryElementwise", "aten::copy_"): "a copy computes nothing",
    ("Reduce_fwd", "aten::max"): "of two tensors it is an elementwise maximum",
    ("BinaryElementwise", "aten::mul"): "an integer operand does not set the result's width",
    ("Reduce_fwd", "aten::linalg_norm"): "its inner operator is counted",
}


def rows(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the kind and fields of each operator that the other analyser has a model for."""
    csv.field_size_limit(CSV_LIMIT)
    for path in sorted(folder.glob("*/*.csv")):
        with path.open(newline="") as lines:
            for row in csv.DictReader(lines):
                if row.get("GFLOPS_first") and row.get("Input Dims_first") and not path.stem.startswith("unified"):
                    yield path.stem, row


def test_work_agrees_with_another_analyser_where_no_difference_is_explained(shared):
    """GEMM, convolution, attention and normalisation of four real traces: the same FLOP, the same bytes."""
    checked: dict[str, int] = {}
    for kind, row in rows(shared / "corpus" / "reference" / "tracelens"):
        inputs = (ast.literal_eval(row[f"{key}_first"]) for key in ("Input Dims", "Input type", "Concrete Inputs"))
        work = work_of(row["name"], *inputs)
        if (kind, row["name"]) in EXPLAINED and not (
            kind == "CONV_bwd" and "[True, True" in row["Concrete Inputs_first"]
        ):
            continue
        assert work is not None, (kind, row["name"])
        where = (kind, row["name"], row["Input Dims_first"])
        assert work.flop == pytest.approx(float(row["GFLOPS_first"]) * 1e9, rel=1e-6), where
        assert work.moved_bytes == pytest.approx(float(row["Data Moved (MB)_first"]) * 2**20, rel=1e-3), where
        checked[kind] = checked.get(kind, 0) + 1
    assert min(checked[kind] for kind in ("GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd", "Normalization")) >= 1
    assert sum(checked.values()) > 100
