"""Requirements that no single module holds alone, each in a test named after its id."""

from uncork.pipeline import analyze_recordings
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
