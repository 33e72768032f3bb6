"""The source articles' reading rules: each threshold beside the measured value, and the ledger decides."""

import json
from dataclasses import replace

import pytest

from tests.unit.reports import starved_report
from uncork.findings import Bottleneck, Message, Verdict
from uncork.pipeline import analyze_recordings
from uncork.report import dumps, from_json, spell
from uncork.testing import sketch
from uncork.wording import larger_elsewhere


def lines(text):
    """Return the report of a sketch and its evidence: (class, metric) → (value, holds)."""
    report = analyze_recordings(sketch(text))
    return report, {
        (one.bottleneck.value, one.evidence.metric): (one.evidence.value, one.evidence.holds)
        for one in report.verdict.evidence
    }


DEVICE = "device NVIDIA A100-SXM4-80GB\n"


def test_r3_1_compute_shows_top_operators_utilisation_and_steadiness():
    """Nine of ten ms in one product: top operators 100 % > 70 %, busy 90 % > 85 %, the same in each step."""
    report, found = lines(
        DEVICE + "steps 5 x 10ms\n  main 0ms..1ms aten::mm -> stream 7 0.5ms..9.5ms ampere_sgemm_128x64_nn\n"
    )
    assert report.verdict.bottleneck is Bottleneck.COMPUTE
    value, holds = found["compute", "top_compute_share"]
    assert (value, holds) == (pytest.approx(1.0), True)
    value, holds = found["compute", "busy_share"]
    assert value == pytest.approx(0.9, abs=0.05)
    assert holds
    assert found["compute", "busy_spread_share"][1]


def test_r3_2_memory_operations_are_held_against_30_percent():
    """Half of the device's time is copying on the device: 50 % > 30 %."""
    _, found = lines(
        DEVICE + "steps 5 x 10ms\n"
        "  main 0ms..1ms aten::mm -> stream 7 1ms..5ms ampere_sgemm_128x64_nn\n"
        "  main 1ms..2ms aten::copy_ -> stream 7 5ms..9ms elementwise_kernel<direct_copy_kernel>\n"
    )
    value, holds = found["memory", "top_memory_share"]
    assert value == pytest.approx(0.5, abs=0.01)
    assert holds


def test_operators_that_the_loader_calls_are_loading():
    """Six of ten ms stack a batch inside the loader, three compute: the operators' time is the computing alone."""
    report, found = lines(
        "steps 5 x 10ms\n"
        "  main 0ms..6.5ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
        "  main 0.2ms..6.2ms aten::stack\n"
        "  main 6.6ms..9.6ms aten::mm\n"
    )
    assert found["compute", "top_compute_share"] == (pytest.approx(1.0), True)
    assert found["memory", "top_memory_share"][1] is not True
    assert "verdict.thresholds.memory" not in [one.id for one in report.verdict.disagreements]


def test_r3_3_data_loading_is_held_against_30_percent_busy_and_50_percent_waiting():
    """Eight of ten ms pass in the loader, two on the device: 20 % < 30 %, 80 % > 50 %."""
    report, found = lines(
        DEVICE + "steps 5 x 10ms\n"
        "  main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
        "  main 8ms..8.1ms x4 every 0.5ms aten::mm -> stream 7 8ms..8.5ms ampere_sgemm_128x64_nn\n"
    )
    assert report.verdict.bottleneck is Bottleneck.DATA_LOADING
    assert found["data_loading", "busy_share"] == (pytest.approx(0.2, abs=0.01), True)
    assert found["data_loading", "loader_share"] == (pytest.approx(0.8, abs=0.01), True)


def test_r3_4_only_exposed_communication_counts_against_40_percent():
    """A collective of 8 ms behind 7.5 ms of computing is 5 % exposed: the class does not hold, compute does."""
    report, found = lines(
        DEVICE + "steps 5 x 10ms\n"
        "  main 0ms..0.5ms aten::mm -> stream 7 1ms..8.5ms ampere_sgemm_128x64_nn\n"
        "  main 0.5ms..1ms c10d::allreduce_ -> stream 20 1ms..9ms ncclDevKernel_AllReduce_Sum_f32_RING_LL\n"
    )
    value, holds = found["communication", "exposed_comm_share"]
    assert value == pytest.approx(0.05, abs=0.01)
    assert not holds
    assert report.verdict.bottleneck is Bottleneck.COMPUTE


def test_r3_5_tiny_operators_are_counted_against_10_000():
    """5 steps of 2,400 operators of 3 µs each are 12,000 tiny calls."""
    report, found = lines("steps 5 x 10ms\n  main 0us..3us x2400 every 4us aten::add\n")
    assert report.verdict.bottleneck is Bottleneck.FRAMEWORK
    assert found["framework", "tiny_calls"] == (12_000, True)


def test_thresholds_that_hold_without_the_ledger_are_explained():
    """Waiting for the loader, while what little runs is one product: the compute lines hold, and the text says why not.

    The device is not there, so utilisation is no line; the only compute line (top operators) holds.
    """
    report, found = lines(
        "steps 8 x 10ms\n"
        "  main 0ms..9.4ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
        "  main 9.4ms..9.5ms x5 every 0.1ms aten::mm\n"
    )
    assert report.verdict.bottleneck is Bottleneck.DATA_LOADING
    assert found["compute", "top_compute_share"][1]
    (sentence,) = report.verdict.disagreements
    assert "not what a step waits for" in spell(sentence, "en")


K01 = (
    DEVICE + "steps 5 x 10ms\n"
    "  main 0ms..3ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
    "  main 3ms..3.1ms aten::mm -> stream 7 3ms..7ms ampere_sgemm_128x64_tn\n"
    "  main 9.8ms..9.9ms cudaDeviceSynchronize\n"
)


def test_a_larger_cause_of_another_class_is_explained():
    """Products take 4 of 10 ms and could give back half; waiting for data takes 3 and could go: that is said."""
    report, _ = lines(K01)
    assert report.verdict.bottleneck is Bottleneck.DATA_LOADING
    assert report.ledger[0].cause == "gemm"
    (told,) = [one for one in report.verdict.disagreements if one.id == "verdict.larger_cause"]
    assert "(matrix products, convolutions, attention, 40 %)" in spell(told, "en")
    assert from_json(json.loads(dumps(report))).verdict.disagreements == report.verdict.disagreements


@pytest.mark.parametrize(
    ("largest", "first", "told"),
    [
        ("data_loading", Bottleneck.DATA_LOADING, []),
        ("gemm", Bottleneck.DATA_LOADING, ["verdict.larger_cause"]),
        ("unexplained", Bottleneck.NONE, []),  # neither is of a class
        ("py_prep", Bottleneck.COMPUTE, ["verdict.larger_finding"]),
    ],
)
def test_what_is_larger_than_the_verdict_is_told_only_where_it_is_of_another_class(largest, first, told):
    """The largest cause and the first finding each have a sentence of their own; with late ranks there is none."""
    finding = replace(starved_report().findings[0], bottleneck=first)
    spent = {"data_loading": 0.3, "gemm": 0.1, largest: 0.4}
    verdict = Verdict(Bottleneck.DATA_LOADING, 0.7, 0.3, Message("verdict.none"))
    assert [one.id for one in larger_elsewhere(verdict, spent, [finding])] == told
    assert larger_elsewhere(replace(verdict, late_ranks=(1,)), spent, [finding]) == ()
    assert larger_elsewhere(verdict, {}, []) == ()


def test_r3_6_used_well_is_a_verdict_and_not_a_fault():
    """Nothing recorded forbids it, nothing is worth 5 %: the verdict names no class, or compute at its limit."""
    report, _ = lines(
        DEVICE + "steps 5 x 10ms\n"
        "  main 0ms..1ms aten::mm -> stream 7 0ms..10ms sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n\n"
    )
    assert report.verdict.bottleneck in {Bottleneck.NONE, Bottleneck.COMPUTE}
    assert not [one for one in report.findings if one.bottleneck is Bottleneck.FRAMEWORK]
