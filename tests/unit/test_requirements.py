"""Requirements that no single module holds alone, each in a test named after its id."""

import pytest

from uncork.pipeline import analyze_recordings
from uncork.report import finding_texts
from uncork.testing import sketch

SEVERAL = """
device NVIDIA A100-SXM4-80GB
with stacks
steps 6 x 20ms
  main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main 8ms..8.2ms aten::mm -> stream 7 8.1ms..14ms ampere_sgemm_128x64_nn
  main 14ms..14.02ms x100 every 30us aten::add -> stream 7 14.01ms..14.015ms vectorized_elementwise_kernel
"""


def test_r6_2_findings_come_in_the_order_of_what_they_give_back():
    """Loading 40 %, a product 30 % and launches 15 % of a step: several findings, the largest gain first."""
    report = analyze_recordings(sketch(SEVERAL))
    gains = [finding.gain.high for finding in report.findings]
    assert len(gains) >= 2
    assert gains == sorted(gains, reverse=True)
    assert report.findings[0].rule == "starved"
    assert all(0 <= finding.gain.low <= finding.gain.high <= 1 for finding in report.findings)


def test_gains_are_bounded_by_amdahl():
    """No finding promises more than the whole step, nor more than its cost where it has one."""
    report = analyze_recordings(sketch(SEVERAL))
    for finding in report.findings:
        if finding.cost_ns_per_step:
            assert finding.gain.high <= finding.share + 1e-6, finding.rule  # costs are whole ns


@pytest.mark.parametrize(
    ("op", "line", "layer", "parameters"),
    [
        ("aten::conv2d", 12, "Conv2d_0", ("kernel 7×7", "stride 2×2", "channels_in 64", "channels_out 256")),
        ("aten::addmm", 20, "Linear_0", ("m 4096", "n 512", "k 1024")),
        (
            "aten::_scaled_dot_product_flash_attention",
            31,
            "Attention_0",
            ("query_length 2048", "key_length 2048", "head_size 64"),
        ),
    ],
)
def test_r5_1_operator_layer_line_and_parameter(op: str, line: int, layer: str, parameters: tuple[str, ...]):
    """A convolution of 7 ms, a product of 6 and attention of 6 fill a step: each with layer, line and sizes."""
    report = analyze_recordings(
        sketch("""
    device NVIDIA A100-SXM4-80GB {"computeMajor": 8, "computeMinor": 0}
    with shapes stacks modules
    steps 4 x 20ms
      main 0ms..19ms train.py(30): step
      main 0ms..1ms nn.Module: Conv2d_0
      main 0.1ms..0.9ms model.py(12): forward
      main 0.2ms..0.8ms aten::conv2d {"Input Dims": [[8, 64, 56, 56], [256, 64, 7, 7], [256], [], [], [], []], "Input type": ["float", "float", "float", "ScalarList", "ScalarList", "ScalarList", "Scalar"], "Concrete Inputs": ["", "", "", "[2, 2]", "[3, 3]", "[1, 1]", "1"]} -> stream 7 0.5ms..7.5ms implicit_convolve_sgemm
      main 2ms..3ms nn.Module: Linear_0
      main 2.1ms..2.9ms model.py(20): forward
      main 2.2ms..2.8ms aten::addmm {"Input Dims": [[512], [4096, 1024], [1024, 512], [], []], "Input type": ["float", "float", "float", "Scalar", "Scalar"]} -> stream 7 7.5ms..13.5ms ampere_sgemm_128x64_tn
      main 4ms..5ms nn.Module: Attention_0
      main 4.1ms..4.9ms model.py(31): forward
      main 4.2ms..4.8ms aten::_scaled_dot_product_flash_attention {"Input Dims": [[4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], [], []], "Input type": ["c10::Half", "c10::Half", "c10::Half", "Scalar", "Scalar"], "Concrete Inputs": ["", "", "", "0.", "True"]} -> stream 7 13.5ms..19.5ms flash_fwd_kernel
    """)  # noqa: E501 - one event a line
    )
    dominant = [one for one in report.findings if one.rule == "dominant-operator"]
    (found,) = [one for one in dominant if one.location.op == op]
    assert (found.location.module, found.location.file, found.location.line) == (layer, "model.py", line)
    because = finding_texts(found, "en")["because"]
    assert [one for one in parameters if one not in because] == [], because


def test_r5_6_the_run_of_small_operators_where_it_is_and_what_fusing_could_save():
    """200 kernels of 5 µs every 44 µs in gelu: 78 % of each step waits for them, far over the article's 20 %."""
    report = analyze_recordings(
        sketch("""
    device NVIDIA A100-SXM4-80GB
    with stacks
    steps 4 x 10ms
      main 0ms..9ms train.py(30): step
      main 0.05ms..8.9ms net.py(7): gelu
      main 0.1ms..0.12ms x200 every 44us aten::mul -> stream 7 0.15ms..0.155ms vectorized_elementwise_kernel
    """)
    )
    found = {one.rule: one for one in report.findings}
    run = found["unfused-elementwise-runs"]
    assert (run.location.file, run.location.line, run.location.function) == ("net.py", 7, "gelu")
    assert {one.metric: one.value for one in run.evidence}["fusable_operators"] == 200
    assert found["launch-bound"].gain.high > 0.2
