"""The compute rules: what they cost, what they promise at most, and what they must never say."""

from dataclasses import replace

import pytest

from tests.unit.rule_outcomes import outcome
from uncork import pipeline
from uncork.findings import NotAssessed
from uncork.report import Report, finding_texts
from uncork.rules import rules
from uncork.testing import sketch

COMPUTE = [one.id for one in rules().values() if one.bottleneck.value == "compute"]


def report_of(text: str) -> Report:
    """Return what the whole pipeline says about a sketch."""
    return pipeline.analyze_recordings(sketch(text))


def finding(report: Report, rule: str, place: int = 0):
    """Return one finding of a rule."""
    return [one for one in report.findings if one.rule == rule][place]


def found(report: Report) -> set[str]:
    """Return the compute rules that found something."""
    return {one.rule for one in report.findings} & set(COMPUTE)


A100 = 'device NVIDIA A100-SXM4-80GB {"computeMajor": 8, "computeMinor": 0}\n'
FP32_PRODUCT = (
    A100
    + """
with shapes
steps 4 x 10ms
  main 0ms..1ms aten::mm {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["float", "float"]} """
    + "-> stream 7 0.2ms..8.2ms ampere_sgemm_128x64_tn\n"
)


CHECKPOINT = """
samples process_rss_bytes 1GiB 2GiB
steps 4 x 10ms
  main 0ms..2ms aten::mm {"Sequence number": 3}
  main 2ms..2.4ms aten::add {"Sequence number": 4}
  main 2.4ms..2.8ms aten::add {"Sequence number": 5}
  main 3ms..3.5ms autograd::engine::evaluate_function: AddBackward0 {"Sequence number": 5}
  main 3.5ms..4ms autograd::engine::evaluate_function: AddBackward0 {"Sequence number": 4}
  main 4ms..9ms autograd::engine::evaluate_function: CheckpointFunctionBackward {"Sequence number": 3}
  main 4.1ms..8.9ms CheckpointFunctionBackward {"Sequence number": 3}
  main 4.2ms..6ms aten::linear {"Sequence number": 6}
  main 4.3ms..5.9ms aten::mm {"Sequence number": 6}
"""


@pytest.mark.parametrize(("ranks", "used"), [(1, 0.25), (2, 0.5), (3, None)])
def test_recomputation_on_the_cpu_is_held_against_the_hosts_memory(ranks: int, used: float | None):
    """Each rank holds 2 of 8 GiB, of a host that they may share: three may need their checkpoints."""
    (one,) = sketch(CHECKPOINT)
    recordings = [replace(one, rank=rank, host={"memory_bytes": 8 << 30}) for rank in range(ranks)]
    findings = outcome("redundant-recompute", recordings)
    assert isinstance(findings, list)
    if used is None:
        assert findings == []
    else:
        (finding,) = findings
        assert finding.params["used_share"] == used
        assert finding.params["free_bytes"] == int((8 << 30) * (1 - used))


def test_recomputation_without_known_memory_is_not_assessed():
    """Nobody knows whether the host has any left."""
    assert isinstance(outcome("redundant-recompute", sketch(CHECKPOINT)), NotAssessed)


def test_the_catalogue_is_there():
    """Diagnosis section 6, and what else was worth a rule."""
    assert set(COMPUTE) == {
        "dominant-operator", "fp32-matmul-without-tf32", "mixed-precision-unused", "tensor-core-misaligned",
        "unfused-attention", "quadratic-attention", "conv-layout-conversions", "cudnn-benchmark-off", "naive-kernel",
        "python-loop-over-tensor", "model-left-on-cpu", "cpu-threads-oversubscribed", "cpu-threads-undersubscribed",
        "training-mode-in-inference", "redundant-recompute", "denormals", "missing-kv-cache", "unheld-gradients",
        "double-precision",
    }  # fmt: skip


def test_tf32_promises_no_more_than_the_peaks_allow():
    """The product reaches 88 % of 19.5 TFLOP/s; at 85 % of TF32's 156 TFLOP/s it would take 13 % of its time."""
    one = finding(report_of(FP32_PRODUCT), "fp32-matmul-without-tf32")
    reached = 2 * 4096**3 / 19.5e12 / 8e-3
    speedup = 0.85 * 156 / 19.5 / reached
    assert reached == pytest.approx(0.881, abs=0.001)
    assert one.share == pytest.approx(0.8)
    assert one.gain.high == pytest.approx(0.8 * (1 - 1 / speedup))
    assert one.gain.low == pytest.approx(0.8 * (1 - 1 / 1.5))
    assert "float32_matmul_precision" in rules()[one.rule].folder.joinpath("fp32_matmul_without_tf32.md").read_text()


def test_a_card_without_faster_tf32_promises_little():
    """An RTX 3060's TF32 peak is its fp32 peak: only the better use of it can be won."""
    text = FP32_PRODUCT.replace(
        'NVIDIA A100-SXM4-80GB {"computeMajor": 8, "computeMinor": 0}', "NVIDIA GeForce RTX 3060"
    )
    text = text.replace("[[4096, 4096], [4096, 4096]]", "[[4096, 4096], [4096, 2048]]")
    one = finding(report_of(text), "fp32-matmul-without-tf32")
    reached = 2 * 4096 * 4096 * 2048 / 12.7e12 / 8e-3
    assert one.gain.high == pytest.approx(0.8 * (1 - reached / 0.85))
    assert one.gain.high < 0.2


def test_dominant_operators_gain_is_the_room_under_the_roofline():
    """At 88 % of the roofline a tenth of its time is left, however large it is; the floor is a quarter of it."""
    one = finding(report_of(FP32_PRODUCT), "dominant-operator")
    room = 0.8 * (1 - 2 * 4096**3 / 19.5e12 / 8e-3)
    assert one.gain.low == pytest.approx(room / 2)
    assert one.gain.high == pytest.approx(max(room, 0.8 / 4))
    assert one.location.op == "aten::mm"


def test_forward_and_gradients_of_one_layer_dominate_together():
    """Three operators of 15 % each, none of them a fifth: together they are what the step does."""
    report = report_of(
        A100
        + """
steps 4 x 10ms
  main 0ms..1ms aten::cudnn_convolution -> stream 7 0.5ms..2ms cutlass_tensorop_bf16_s16816fprop_optimized_bf16
  main 1ms..2ms aten::cudnn_convolution_backward_input -> stream 7 2ms..3.5ms cutlass_tensorop_bf16_dgrad_bf16
  main 2ms..3ms aten::cudnn_convolution_backward_weight -> stream 7 3.5ms..5ms cutlass_tensorop_bf16_wgrad_bf16
  main 3ms..4ms aten::add -> stream 7 5ms..9.5ms vectorized_elementwise_kernel
"""
    )
    assert len([one for one in report.findings if one.rule == "dominant-operator"]) == 3


@pytest.mark.parametrize(("lang", "which"), [("en", (" (backward)", " (forward)")), ("zh", ("（反向）", "（前向）"))])
def test_an_operator_that_dominates_twice_says_which_time(lang: str, which: tuple[str, str]):
    """aten::mm takes 3 ms of 10 ms forward and 4 ms backward; an operator that dominates once needs no word."""
    report = report_of("""
    steps 4 x 10ms
      main 0ms..3ms aten::mm
      main 3ms..7.5ms autograd::engine::evaluate_function: MmBackward0
      main 3.1ms..7.1ms aten::mm
      main 7.5ms..9.9ms aten::bmm
    """)
    titles = [finding_texts(one, lang)["title"] for one in report.findings if one.rule == "dominant-operator"]
    assert [one.partition("aten::mm")[2].startswith(end) for one, end in zip(titles, which, strict=False)] == [True] * 2
    assert "aten::bmm takes" in titles[2] or "aten::bmm 占" in titles[2]


@pytest.mark.parametrize("rule", COMPUTE)
def test_no_gain_exceeds_what_the_step_holds(rule: str):
    """Amdahl: no finding of a page's examples promises more than its share, or a negative amount."""
    from uncork.testing import examples, page_of

    for example in examples(page_of(rule).read_text("utf-8")):
        for one in report_of(example.sketch).findings:
            if one.rule == rule:
                assert 0 <= one.gain.low <= one.gain.high <= 1
                if one.cost_ns_per_step:
                    assert one.gain.high <= one.share + 1e-9


def test_an_operator_that_only_waits_is_never_dominant():
    """aten::item holds the host for 8 ms while the product runs: the product is what takes the time."""
    report = report_of(
        FP32_PRODUCT + "  main 1ms..8.5ms aten::item\n  main 1.1ms..8.4ms aten::_local_scalar_dense\n"
        "  main 1.2ms..8.3ms cudaStreamSynchronize\n"
    )
    assert {one.location.op for one in report.findings if one.rule in COMPUTE} == {"aten::mm"}


def test_host_times_are_no_compute_where_the_device_is_not_recorded():
    """Launches without records: silent about compute, and said to be so."""
    report = report_of(
        A100
        + "steps 4 x 10ms\n  main 0ms..9ms aten::conv2d\n"
        + "  main 1ms..2ms cudaLaunchKernel\n  main 3ms..4ms cudaLaunchKernel"
    )
    assert not found(report)
    assert "dominant-operator" in {one.rule for one in report.not_assessed}


def test_tiny_operators_do_not_dominate_a_host():
    """2 000 additions of 3 µs are dispatch, however much they add up to."""
    report = report_of("steps 4 x 10ms\n  main 0ms..3us x2000 every 4us aten::add")
    assert "dominant-operator" not in found(report)


def test_padding_is_asked_for_to_the_next_multiple_of_eight():
    """50257, a well-known vocabulary, becomes 50264."""
    report = report_of(
        A100 + """
with shapes
steps 4 x 10ms
  main 0ms..1ms aten::mm {"Input Dims": [[8192, 768], [768, 50257]], "Input type": ["c10::Half", "c10::Half"]} """
        "-> stream 7 0.2ms..6.2ms cutlass_75_tensorop_f16_s1688gemm_f16_256x128_nn_align1\n"
    )
    one = finding(report, "tensor-core-misaligned")
    assert one.params["padded"] == 50264
    assert one.gain.high < one.share


def test_a_lone_synchronisation_is_no_use_of_a_device():
    """A program that never gives the device work still calls its runtime once at the profiler's end."""
    text = "device NVIDIA A100-PCIE-40GB\nsteps 4 x 10ms\n  main 0ms..8ms aten::mkldnn_convolution\n"
    assert "model-left-on-cpu" in found(report_of(text + "once\n  main 0ms..1ms cudaDeviceSynchronize"))
    assert "model-left-on-cpu" not in found(report_of(text + "  main 9ms..9.1ms cudaLaunchKernel"))


def test_conversions_of_other_vendors_formats_are_not_called_channels_last():
    """Ascend's TransData turns into private formats; channels_last would not spare it."""
    text = """
device Ascend910B
steps 4 x 10ms
  main 0ms..1ms aten::conv2d -> stream 7 0.2ms..4ms Conv2D -> stream 7 4ms..7ms TransData
"""
    assert "conv-layout-conversions" not in found(report_of(text))


def test_fixed_sizes_with_benchmark_on_are_clear_and_changing_ones_are_not():
    """Trying pays where each step meets the same shapes; with a new shape in every step it never ends."""
    flags = '"Concrete Inputs": ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "True", "False", "True"]'
    types = '"Input type": ["float", "float", "ScalarList"]'
    step = (
        '  main 0ms..1ms aten::cudnn_convolution {{"Input Dims": [[8, 64, {side}, 56], [64, 64, 3, 3], []], {rest}}} '
    )
    text = A100 + "with shapes\nsteps 1 x 1ms\n  main 0ms..0.1ms aten::add\n"
    for number in range(6):
        text += "steps 1 x 10ms\n" + step.format(side=50 + number, rest=f"{types}, {flags}")
        text += "-> stream 7 0.2ms..8ms sm80_xmma_fprop_implicit_gemm_tf32f32\n"
    changing = report_of(text)
    assert finding(changing, "cudnn-benchmark-off").advice == ("fix-sizes",)
    fixed = text
    for number in range(6):
        fixed = fixed.replace(f"[8, 64, {50 + number}, 56]", "[8, 64, 56, 56]")
    assert "cudnn-benchmark-off" not in found(report_of(fixed))


@pytest.mark.parametrize(
    ("case", "must", "op"),
    [
        ("W33", {"fp32-matmul-without-tf32", "dominant-operator"}, "aten::addmm"),
        ("W21", {"fp32-matmul-without-tf32", "dominant-operator"}, "aten::mm"),
        ("W24", {"conv-layout-conversions", "dominant-operator"}, "aten::convolution_backward"),
        ("W40", {"model-left-on-cpu", "training-mode-in-inference", "dominant-operator"}, "aten::mkldnn_convolution"),
        ("W09", {"naive-kernel", "dominant-operator"}, "aten::convolution_backward"),
        ("T01", {"unfused-attention", "tensor-core-misaligned"}, None),
        ("K02", {"mixed-precision-unused", "dominant-operator"}, None),
    ],
)
def test_real_traces_name_their_cause(shared, case: str, must: set[str], op: str | None):
    """Labelled cases: the cause is found, and the operator at the top is the one that computes."""
    report = pipeline.analyze(sorted((shared / "corpus" / "cases" / case).iterdir()))
    assert must <= found(report)
    if op:
        assert finding(report, "dominant-operator").location.op == op
    waits = {"aten::item", "aten::_local_scalar_dense", "aten::nonzero", "cudaDeviceSynchronize"}
    assert not {one.location.op for one in report.findings if one.rule in COMPUTE} & waits


def test_a_trace_without_host_claims_no_place(shared):
    """Case T10 has kernels only: an operator's name is all that may be said."""
    report = pipeline.analyze(sorted((shared / "corpus" / "cases" / "T10").iterdir()))
    places = [(one.location.module, one.location.file) for one in report.findings]
    assert places
    assert set(places) == {(None, None)}


def test_one_interrupted_call_does_not_make_an_operator_dominant():
    """Five calls of 1 ms and one of 95 ms, when another process had the core: half of the time, but not the cause."""
    usual = "steps 5 x 20ms\n  main 0ms..1ms aten::mul\n"
    assert "dominant-operator" not in found(report_of(usual + "steps 1 x 100ms\n  main 0ms..95ms aten::mul\n"))
    assert "dominant-operator" in found(report_of("steps 6 x 20ms\n  main 0ms..12ms aten::mul\n"))


def test_custom_backward_functions_that_launch_kernels_themselves_are_named():
    """A hand-written autograd function has no operator below its node: the node is what computes."""
    report = report_of(
        A100 + "steps 4 x 10ms\n  backward 0ms..1ms FlashAttnFuncBackward -> stream 7 0.5ms..8ms flash_bwd_kernel\n"
    )
    assert finding(report, "dominant-operator").location.op == "FlashAttnFuncBackward"


def test_attention_in_one_function_is_told_apart_by_the_window_with_shapes():
    """Both products lie at one place: 2 + 4 + 2 of 10 ms are attention, though the light window knows no shapes."""
    (light,) = sketch(
        "steps 2 x 10ms\n  main 0ms..2ms aten::bmm\n  main 2ms..6ms aten::_softmax\n  main 6ms..8ms aten::bmm\n"
    )
    (deep,) = sketch("""
    with shapes
    steps 1 x 10ms
      main 0ms..1ms aten::bmm {"Input Dims": [[8, 128, 16], [8, 16, 128]]}
      main 1ms..5ms aten::_softmax {"Input Dims": [[8, 128, 128], [], []]}
      main 5ms..8ms aten::bmm {"Input Dims": [[8, 128, 128], [8, 128, 16]]}
    """)
    one = finding(pipeline.analyze_recordings([replace(light, deep=deep)]), "unfused-attention")
    assert one.cost_ns_per_step == pytest.approx(8_000_000, abs=2)
    assert one.params["length"] == 128


def test_fused_attention_that_falls_back_is_not_told_to_call_itself():
    """The slow path holds the softmax: why it is slow and how to learn the reason, not `call it`; by hand, call it."""
    parts = """
  main 1ms..3ms aten::bmm {"Input Dims": [[32, 256, 64], [32, 64, 256]]}
  main 3ms..5ms aten::_softmax {"Input Dims": [[4, 8, 256, 256], [], []]}
  main 5ms..7ms aten::bmm {"Input Dims": [[32, 256, 256], [32, 256, 64]]}
"""
    slow = "  main 0.1ms..8.9ms aten::_scaled_dot_product_attention_math"
    said = {
        lang: finding_texts(
            finding(report_of(f"with shapes\nsteps 4 x 10ms\n{slow}{parts}"), "unfused-attention"), lang
        )
        for lang in ("en", "zh")
    }
    assert "falls back to its slow path" in said["en"]["title"]
    assert "退回慢路径" in said["zh"]["title"]
    assert all("dropout" in one["because"] for one in said.values())
    assert [one["id"] for one in said["en"]["advice"]] == ["fallback", "reason"]
    assert "sdpa_kernel" in said["zh"]["advice"][1]["snippet"]
    by_hand = finding(report_of(f"with shapes\nsteps 4 x 10ms{parts}"), "unfused-attention")
    assert by_hand.advice == ("sdpa", "library")
    assert "in separate operators" in finding_texts(by_hand, "en")["title"]


def test_little_of_the_slow_path_does_not_speak_for_attention_by_hand():
    """1 ms on the slow path beside 6 ms by hand: less than half of it fell back."""
    one = finding(
        report_of("""
with shapes
steps 4 x 10ms
  main 0ms..1ms aten::_scaled_dot_product_attention_math
  main 1ms..3ms aten::bmm {"Input Dims": [[32, 256, 64], [32, 64, 256]]}
  main 3ms..5ms aten::_softmax {"Input Dims": [[4, 8, 256, 256], [], []]}
  main 5ms..7ms aten::bmm {"Input Dims": [[32, 256, 256], [32, 256, 64]]}
"""),
        "unfused-attention",
    )
    assert one.params["form"] == "@attention.by_hand"


def growing(lengths: range, since_ms: float = 0.0) -> str:
    """Return products of 0.5 ms each with so many rows."""
    return "".join(
        f"\n  main {since_ms + place / 2}ms..{since_ms + place / 2 + 0.5}ms aten::addmm "
        f'{{"Input Dims": [[64], [{rows}, 64], [64, 64]]}}'
        for place, rows in enumerate(lengths)
    )


def test_a_short_generation_without_a_cache_is_told_where_each_step_is_one():
    """Eight tokens in each step: 0.5 ms x (7 - 1/17 - ... - 1/23) of 10; seven are few, and fifteen in two."""
    each = "with shapes\nsteps 2 x 10ms"
    told = finding(report_of(each + growing(range(16, 24))), "missing-kv-cache")
    assert told.share == pytest.approx(0.5 * sum(1 - 1 / rows for rows in range(17, 24)) / 10, rel=1e-3)
    assert [(one.value, one.threshold) for one in told.evidence][1] == (8, 7)
    assert "missing-kv-cache" not in found(report_of(each + growing(range(16, 23))))
    for last, named in ((31, False), (32, True)):
        halves = growing(range(16, 24), -19.9) + growing(range(24, last), -9.9)
        report = report_of("with shapes\nsteps 2 x 10ms\n  main 0ms..1us aten::add\nonce" + halves)
        assert ("missing-kv-cache" in found(report)) is named
