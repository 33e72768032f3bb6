"""What misled other tools on real traces, each trap in a small sketch; the whole way, from events to the verdict."""

import pytest

from uncork.compare import compare
from uncork.findings import Bottleneck
from uncork.locale import say
from uncork.pipeline import analyze_recordings
from uncork.report import Report, finding_texts
from uncork.testing import sketch

DEVICE = "device NVIDIA A100-SXM4-80GB\n"
MS = 1_000_000


def report(text: str) -> Report:
    """Return what is concluded from a sketch of an A100."""
    return analyze_recordings(sketch(DEVICE + text))


def test_trap_collectives_of_78_percent_that_wait_for_two_late_ranks() -> None:
    """Two of four ranks dispatch for 8.6 ms while the others wait: framework on those two, not communication."""
    found = report("""
        ranks 4
        steps 4 x 10ms
          rank 0: main 0ms..0.1ms aten::mm -> stream 7 0.1ms..1.5ms ampere_sgemm
          rank 1: main 0ms..0.1ms aten::mm -> stream 7 0.1ms..1.5ms ampere_sgemm
          rank 2: main 0ms..0.018ms x420 every 0.02ms aten::add -> stream 7 0.01ms..0.013ms elementwise_kernel
          rank 3: main 0ms..0.018ms x420 every 0.02ms aten::add -> stream 7 0.01ms..0.013ms elementwise_kernel
          rank 0: main op 1.5ms..1.6ms c10d::allreduce_ -> stream 20 1.6ms..9.4ms ncclDevKernel_AllReduce
          rank 1: main op 1.5ms..1.6ms c10d::allreduce_ -> stream 20 1.6ms..9.4ms ncclDevKernel_AllReduce
          rank 2: main op 8.5ms..8.6ms c10d::allreduce_ -> stream 20 8.6ms..9.4ms ncclDevKernel_AllReduce
          rank 3: main op 8.5ms..8.6ms c10d::allreduce_ -> stream 20 8.6ms..9.4ms ncclDevKernel_AllReduce
    """).verdict
    assert found.bottleneck is Bottleneck.FRAMEWORK
    assert sorted(found.late_ranks) == [2, 3]


def test_trap_most_kernel_time_in_collectives_that_computing_hides() -> None:
    """46 % of the kernel time is communication, 3 % of the step is exposed: compute, not communication."""
    found = report("""
        steps 4 x 10ms
          main 0ms..0.1ms aten::mm -> stream 7 0.1ms..9.7ms ampere_sgemm
          main op 0.2ms..0.3ms c10d::allreduce_ -> stream 20 1.5ms..10ms ncclDevKernel_AllReduce
          main 0.3ms..0.4ms x20 every 0.2ms aten::view
    """).verdict
    assert found.bottleneck is Bottleneck.COMPUTE
    assert Bottleneck.COMMUNICATION not in found.contributing


def test_trap_mixed_precision_behind_a_slow_loader() -> None:
    """Kernels halve from 3.6 to 1.8 ms, the loader's 62 % become 80 %, the step stays: twice data loading."""
    step = """
        steps 6 x 10ms
          main 0ms..{loaded}ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
          main {loaded}ms..9.9ms aten::mm -> stream 7 {start}ms..9.95ms {kernel}
    """
    full = report(step.format(loaded=6.2, start=6.35, kernel="ampere_sgemm"))
    half = report(step.format(loaded=8.0, start=8.15, kernel="ampere_h16816gemm"))
    assert full.verdict.bottleneck is half.verdict.bottleneck is Bottleneck.DATA_LOADING
    changed = compare(full, half)
    assert changed.step_change_share == 0
    assert sum(one.difference_ns for one in changed.ledger if one.name == "gemm") == -1_800_000


@pytest.mark.parametrize(
    ("waits", "call"),
    [
        ("op 0.5ms..9.6ms aten::item", "cudaStreamSynchronize"),
        ("op 0.5ms..9.6ms aten::nonzero", "cudaStreamSynchronize"),
        ("region 0.5ms..9.6ms evaluate", "cudaDeviceSynchronize"),
    ],
)
def test_trap_an_operator_that_only_waits_is_the_place_and_not_the_cause(waits: str, call: str) -> None:
    """Something holds the host for nine tenths of the step while the device multiplies: compute, and mm is named."""
    found = report(f"""
        steps 4 x 10ms
          main 0ms..0.1ms aten::mm -> stream 7 0.1ms..9.5ms ampere_sgemm
          main {waits}
          main runtime 0.6ms..9.55ms {call}
          main 9.7ms..9.705ms x10 every 0.01ms aten::view
    """)
    assert found.verdict.bottleneck is Bottleneck.COMPUTE
    assert Bottleneck.FRAMEWORK not in found.verdict.contributing
    blamed = {one.location.op for one in found.findings if one.cost_ns_per_step}
    assert "aten::mm" in blamed
    assert not blamed & {"aten::item", "aten::nonzero", call}


def test_trap_launches_without_device_records_are_no_idle_device() -> None:
    """Forty launches and not one kernel: no verdict, and how to record the device."""
    found = report("""
        steps 4 x 10ms
          main 0ms..0.1ms x10 every 0.9ms aten::mm
          main runtime 0.05ms..0.06ms x10 every 0.9ms cudaLaunchKernel
    """)
    assert found.verdict.summary.id == "verdict.undetermined.device-data-missing"
    assert "ProfilerActivity.CUDA" in say("en", "quality.device-data-missing.fix")


def test_trap_start_up_only_is_no_workload() -> None:
    """Eight kernels behind lazy launches of hundreds of milliseconds: record again, after warming up."""
    found = report("""
        once
          main 0ms..0.1ms aten::mm -> stream 7 0.1ms..0.2ms ampere_sgemm
          main runtime 1ms..400ms cudaLaunchKernel -> stream 7 400ms..400.1ms ampere_sgemm
          main runtime 401ms..700ms cudaFree
          main 700ms..700.1ms x6 every 1ms aten::mm
    """).verdict
    assert found.summary.id == "verdict.undetermined.too-short"


def test_trap_pinned_or_pageable() -> None:
    """The same copy: from pageable memory pinning is the advice, and non_blocking alone none; from pinned it is not."""
    step = """
        steps 6 x 10ms
          main 0ms..4ms aten::copy_ -> stream 7 1ms..4ms Memcpy HtoD ({memory} -> Device)
          main 4ms..4.1ms aten::mm -> stream 7 4.2ms..9ms ampere_sgemm
    """
    found = {one.rule: one for one in report(step.format(memory="Pageable")).findings}
    snippets = [one["snippet"] for one in finding_texts(found["pageable-copy"], "en")["advice"]]
    assert all("pin" in one for one in snippets if "non_blocking" in one)
    assert any("pin_memory=True" in one for one in snippets)
    pinned = report(step.format(memory="Pinned"))
    assert "pageable-copy" in pinned.clear
    assert "exposed-copies" in {one.rule for one in pinned.findings}


def test_trap_host_steps_of_2_ms_with_25_ms_of_device_work_each() -> None:
    """The host marks three steps in 6 ms and the device works for 75: steps of 25 ms, 99 % busy, compute."""
    found = report("""
        steps 3 x 2ms
          main op 0ms..0.5ms a
        once
          main -5.9ms..-5.8ms aten::mm -> stream 7 -5.5ms..19.5ms ampere_sgemm
          main -3.9ms..-3.8ms aten::mm -> stream 7 19.5ms..44.5ms ampere_sgemm
          main -1.9ms..-1.8ms aten::mm -> stream 7 44.5ms..69.5ms ampere_sgemm
    """)
    assert found.run["median_step_ns"] == 25 * MS
    assert found.run["busy_share"] > 0.99
    assert found.verdict.bottleneck is Bottleneck.COMPUTE


def test_trap_a_stray_kernel_463_ms_before_the_window() -> None:
    """One kernel of 10 µs without a launch, then 30 ms of products: the window is those 30 ms, and no idle device."""
    found = report("""
        once
          stream 7 0ms..0.01ms stray
          stream 7 463ms..464ms x30 every 1ms ampere_sgemm
    """)
    assert found.run["step_ns"] == 30 * MS
    assert found.verdict.bottleneck is Bottleneck.COMPUTE


def test_trap_device_records_without_any_host_side_still_say_what_the_device_does() -> None:
    """No operator, no launch: a device that is busy with matrix products for 90 % is compute-bound."""
    found = report("""
        once
          stream 7 0ms..0.9ms x30 every 1ms ampere_sgemm
    """)
    assert found.verdict.bottleneck is Bottleneck.COMPUTE
    assert "no-cpu-ops" in {one.id for one in found.quality}
