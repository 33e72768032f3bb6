"""The four pitfalls of reading a profile (requirements, pitfalls 1 to 4), each only where it is a real observation."""

from dataclasses import replace
from pathlib import Path

from tests.unit.rule_outcomes import clear, found, found_in, outcome
from uncork.findings import Bottleneck, Gain
from uncork.recording import RunInfo
from uncork.report import finding_texts
from uncork.testing import sketch

STEADY = "steps 4 x 10ms\n  main 0ms..9.9ms aten::mm"


def test_pitfall_1_warm_up_included():
    """A first step ten times as long as the others is seen; equal steps are not."""
    finding = found(
        "warm-up-included", "steps 1 x 100ms\n  main 0ms..99ms aten::mm\nsteps 3 x 10ms\n  main 0ms..9ms aten::mm"
    )
    ratio = next(one for one in finding.evidence if one.metric == "first_step_ratio")
    assert (ratio.value, ratio.threshold, ratio.holds) == (10.0, 2.0, True)
    assert (finding.params["first_ns"], finding.params["others_ns"]) == (100_000_000, 10_000_000)
    assert clear("warm-up-included", STEADY)


def test_pitfall_1_one_step_is_compared_with_none():
    """A single step with a first use of 20 ms has no others: no ratio is made up, and the sentence says why."""
    finding = found(
        "warm-up-included",
        "device Tesla T4\nsteps 1 x 100ms\n  main 0ms..20ms cudaFree\n"
        "  main 21ms..22ms aten::mm -> stream 7 22ms..99ms gemm",
    )
    assert [one.metric for one in finding.evidence] == ["first_use_share"]
    assert finding_texts(finding, "en")["because"].endswith("median of the others: not known, too few steps.")
    assert finding_texts(finding, "zh")["because"].endswith("其余各步的中位数：未知（步数太少）。")


def test_pitfall_1_steps_that_the_recorder_chose_are_compared_with_none():
    """`uncork run` lets the first steps pass: a longer one of those it records is chance, and skipping is not news."""
    (recording,) = sketch("steps 1 x 30ms\n  main 0ms..29ms aten::mm\nsteps 2 x 10ms\n  main 0ms..9ms aten::mm")
    assert outcome("warm-up-included", [recording])
    assert outcome("warm-up-included", [replace(recording, run=RunInfo())]) == []
    used = "  main 0ms..20ms cudaFree\n  main 21ms..22ms aten::mm -> stream 7 22ms..99ms gemm"
    (recording,) = sketch(f"device Tesla T4\nsteps 1 x 100ms\n{used}")
    (finding,) = outcome("warm-up-included", [replace(recording, run=RunInfo())])
    assert finding.advice == ("schedule",)


def test_pitfall_2_flags_missing():
    """What was switched off is named as torch spells it; what was switched on is not."""
    finding = found("flags-missing", 'trace {"record_shapes": 1, "profile_memory": 0, "with_stack": 0}\n' + STEADY)
    assert finding.params["settings"] == "profile_memory=True, with_stack=True"
    assert clear("flags-missing", "with shapes stacks memory\n" + STEADY)


def test_pitfall_3_total_read_as_self():
    """A wrapper leads by total, an operator outside it by its own time; inside it the order would be right."""
    apart = """
    steps 2 x 10ms
      main 0ms..4ms aten::conv2d
      main 0.1ms..2ms aten::im2col
      main 2ms..3.9ms aten::bmm
      main 4ms..7ms aten::addmm
    """
    finding = found("total-read-as-self", apart)
    assert (finding.params["by_total"], finding.params["total_ns"]) == ("aten::conv2d", 4_000_000)
    assert (finding.params["by_self"], finding.params["self_ns"]) == ("aten::addmm", 3_000_000)
    assert finding.params["total_self_ns"] == 200_000
    assert clear("total-read-as-self", "steps 2 x 10ms\n  main 0ms..9ms aten::linear\n  main 0.1ms..8.9ms aten::addmm")
    # Nobody read a table of the profiler's where `uncork run` recorded.
    assert outcome("total-read-as-self", [replace(one, run=RunInfo()) for one in sketch(apart)]) == []


def test_pitfall_4_cpu_ignored():
    """Device records without the host's; with both sides there is nothing to say."""
    finding = found("cpu-ignored", "device Tesla T4\nstream 7 0ms..1ms gemm\nstream 7 9ms..10ms gemm")
    assert finding.params["idle_share"] == 0.8
    assert clear(
        "cpu-ignored", "device Tesla T4\nsteps 2 x 10ms\n  main 0ms..1ms aten::mm -> stream 7 0.5ms..9.9ms gemm"
    )


def test_hygiene_costs_nothing_and_has_no_class():
    """Observations about the recording never win a verdict."""
    finding = found("flags-missing", 'trace {"record_shapes": 0}\n' + STEADY)
    assert (finding.bottleneck, finding.cost_ns_per_step, finding.gain) == (Bottleneck.NONE, 0, Gain(0.0, 0.0))


def test_a_recording_of_the_device_alone_is_recognised(shared: Path):
    """A public trace made without CPU activity."""
    case = shared / "corpus" / "cases" / "T10"
    assert found_in("cpu-ignored", *sorted(case.iterdir())).confidence == 1.0
