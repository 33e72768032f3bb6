"""The ledger: every nanosecond of hand-made steps to the cause it was made for."""

from dataclasses import replace

import numpy as np
import pytest

from uncork.findings import Bottleneck
from uncork.ledger import CAUSES, partition
from uncork.measure import Rank
from uncork.measure.step_ledger import StepLedger
from uncork.testing import sketch
from uncork.timeline import Timeline

MS = 1_000_000


def causes(text: str) -> dict[str, int]:
    """Return cause → ns over all steps of a sketch of one rank, without those that got nothing."""
    (recording,) = sketch(text)
    ledger = partition(Timeline(recording))
    assert (ledger.ns.sum(axis=0) == ledger.step_ns).all()
    return {cause: int(ns) for cause, ns in zip(ledger.causes, ledger.ns.sum(axis=1), strict=True) if ns}


DEVICE = "device NVIDIA A100-SXM4-80GB\n"


def test_device_work_by_class_arithmetic_before_memory_before_communication_before_copies() -> None:
    """Kernels that overlap count once, for the first in the order."""
    assert causes(
        DEVICE
        + """
        steps 2 x 10ms
          main 0ms..0.1ms aten::mm -> stream 7 1ms..4ms ampere_sgemm
          main 0.1ms..0.2ms aten::add -> stream 8 3ms..6ms vectorized_elementwise_kernel
          main op 0.2ms..0.3ms c10d::allreduce_ -> stream 9 5ms..8ms ncclDevKernel_AllReduce
          main 0.3ms..10ms aten::to -> stream 7 7ms..10ms Memcpy HtoD (Pinned -> Device)
        """
    ) == {
        "gemm": 6 * MS,
        "bandwidth": 4 * MS,
        "comm": 4 * MS,
        "copy": 4 * MS,
        "dispatch": 2 * MS,
    }


def test_what_an_optimizers_closure_calls_is_not_its_overhead() -> None:
    """Lightning and L-BFGS call the loss inside the step: only what is behind its backward is the update's."""
    found = causes("""
        steps 2 x 10ms
          main 0ms..9ms Optimizer.step#LBFGS.step
          main 0ms..0.01ms x100 every 0.02ms aten::mul
          main 2ms..5ms autograd::engine::evaluate_function: MmBackward0
          main 2ms..5ms aten::mm
          main 6ms..6.01ms x40 every 0.05ms aten::dot
    """)
    # From 5 ms to 9 ms, the 40 calls and all between them, in each of two steps.
    assert found["optimizer"] == 2 * 4 * MS
    assert found["tiny"] == 2 * 100 * 10_000


def test_idle_under_the_loader_is_data_loading_even_where_operators_run_below_it() -> None:
    """The loader's next comes before dispatching: collating runs operators too."""
    assert causes(
        DEVICE
        + """
        steps 3 x 10ms
          main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
          main 1ms..5ms aten::stack
          main 6ms..7ms aten::mm -> stream 7 7ms..10ms ampere_sgemm
        """
    ) == {"data_loading": 18 * MS, "gemm": 9 * MS, "dispatch": 3 * MS}


def test_the_loader_behind_a_busy_device_costs_nothing() -> None:
    """Loading that the device's work hides is no data loading time."""
    assert "data_loading" not in causes(
        DEVICE
        + """
        steps 3 x 10ms
          main 0ms..0.1ms aten::mm -> stream 7 0.1ms..10ms ampere_sgemm
          main 1ms..9ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        """
    )


def test_short_gaps_are_python_long_ones_without_frames_stay_unexplained() -> None:
    """Up to 300 µs between operators is Python; 4 ms without a frame is not known."""
    assert causes(
        DEVICE
        + """
        steps 1 x 10ms
          main 0ms..1ms aten::empty
          main 1.2ms..3ms aten::empty
          main 7ms..7.5ms aten::mm -> stream 7 7.5ms..10ms ampere_sgemm
        """
    ) == {"dispatch": int(3.3 * MS), "py_short": int(0.2 * MS), "unexplained": 4 * MS, "gemm": int(2.5 * MS)}


def test_python_frames_explain_long_gaps() -> None:
    """The same gap under a Python frame is Python code; under an image processor it is the making of input."""
    text = (
        DEVICE
        + """
        steps 1 x 10ms
          main 0ms..10ms FRAME
          main 0ms..1ms aten::relu
          main 5ms..5.5ms aten::mm -> stream 7 5.5ms..10ms ampere_sgemm
        """
    )
    assert causes(text.replace("FRAME", "train.py(3): step"))["py_stack"] == 4 * MS
    assert causes(text.replace("FRAME", "image_processing_vit.py(9): preprocess"))["py_prep"] == int(5.5 * MS)


def test_a_frame_of_pytorch_that_stands_still_is_a_stall_of_the_machine() -> None:
    """8 ms inside relu without an operator are nobody's code; 8 ms inside sleep are the program's."""
    text = """
        steps 2 x 10ms
          main python 0ms..10ms train.py(3): step
          main 0ms..1ms aten::mm
          main python 1ms..9ms FRAME
          main 9ms..10ms aten::mm
    """
    assert causes(text.replace("FRAME", "torch/nn/functional.py(1760): relu"))["unexplained"] == 16 * MS
    assert causes(text.replace("FRAME", "<built-in method relu of type object at 0x7f>"))["unexplained"] == 16 * MS
    assert causes(text.replace("FRAME", "<built-in function sleep>"))["py_stack"] == 16 * MS
    assert causes(text.replace("FRAME", "uncork/capture/regions.py(36): name"))["unexplained"] == 16 * MS


def test_a_built_in_that_calls_an_operator_is_pytorchs() -> None:
    """What has no file tells whose it is by what it calls: 8 of its 9 ms without an operator are a stall, else work."""
    text = "steps 2 x 10ms\n  main 0ms..10ms train.py(3): step\n  main 0.5ms..9.5ms <built-in function linear>\n"
    assert causes(text + "  main 0.5ms..1.5ms aten::linear")["unexplained"] == 16 * MS
    assert "unexplained" not in causes(text + "  main 9.5ms..10ms aten::linear")


def test_first_use_is_apart_and_needs_an_idle_device() -> None:
    """A launch of 40 ms among launches of 10 µs is a first use where the device idles, dispatching where it works."""
    text = (
        DEVICE
        + """
        once
          stream 9 KERNEL other
          main 0ms..41ms aten::mm
          main runtime 0ms..0.01ms cudaLaunchKernel -> stream 7 0.01ms..1ms ampere_sgemm
          main runtime 1ms..41ms cudaLaunchKernel -> stream 7 41ms..50ms ampere_sgemm
          main runtime 41ms..41.01ms x20 every 0.1ms cudaLaunchKernel
        """
    )
    idle = causes(text.replace("KERNEL", "49ms..50ms"))
    assert idle["first_use"] == 40 * MS
    busy = causes(text.replace("KERNEL", "1ms..41ms"))
    assert "first_use" not in busy


def test_waits_over_an_idle_device_are_unrecorded_when_long_and_sync_when_short() -> None:
    """Nothing recorded runs, yet the host waits 5 ms: something outside the recording does."""
    found = causes(
        DEVICE
        + """
        steps 2 x 10ms
          main 0ms..0.5ms aten::mm -> stream 7 0.5ms..2ms ampere_sgemm
          main runtime 2ms..2.5ms cudaStreamSynchronize
          main runtime 3ms..8ms cudaStreamSynchronize
          main 8ms..10ms aten::relu
        """
    )
    assert found["unrecorded"] == 10 * MS
    assert found["sync"] == 1 * MS


def test_staging_a_pageable_copy_is_memory_waiting_for_a_copy_back_is_not() -> None:
    """The host copies pageable memory itself before the device does; a copy to the host has nothing to stage."""
    text = (
        DEVICE
        + """
        steps 2 x 10ms
          main runtime 0ms..6ms cudaMemcpyAsync -> stream 7 5ms..6ms Memcpy DIRECTION
          main 6ms..6.1ms aten::mm -> stream 7 6.1ms..10ms ampere_sgemm
        """
    )
    assert causes(text.replace("DIRECTION", "HtoD (Pageable -> Device)"))["copy_host"] == 10 * MS
    assert causes(text.replace("DIRECTION", "DtoH (Device -> Pageable)"))["unrecorded"] == 10 * MS


def test_reading_one_value_is_a_synchronisation_whatever_it_calls() -> None:
    """The copy that item() makes blocks the host for the wait, not for its four bytes."""
    found = causes(
        DEVICE
        + """
        steps 2 x 10ms
          main 0ms..1.5ms aten::_local_scalar_dense
          main runtime 0.1ms..1.4ms cudaMemcpyAsync -> stream 7 1ms..1.1ms Memcpy DtoH (Device -> Pageable)
          main 1.5ms..1.6ms aten::mm -> stream 7 1.6ms..10ms ampere_sgemm
        """
    )
    assert found["sync"] == int(2.8 * MS)
    assert "copy_host" not in found


def test_work_of_the_host_is_heavy_allocations_and_launching_operators_are_not() -> None:
    """Filling 4 ms of random numbers on the CPU is work; 4 ms in empty, or in an operator that launches, is a stall."""
    text = (
        DEVICE
        + """
        steps 2 x 10ms
          main 0ms..4ms WHAT
          main 4ms..4.1ms aten::mm -> stream 7 4.1ms..10ms ampere_sgemm
        """
    )
    assert causes(text.replace("WHAT", "aten::normal_"))["cpu_heavy"] == 8 * MS
    assert "cpu_heavy" not in causes(text.replace("WHAT", "aten::empty"))
    launching = "aten::normal_ -> stream 8 4.1ms..4.2ms distribution_elementwise_grid_stride_kernel"
    assert "cpu_heavy" not in causes(text.replace("WHAT", launching))


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        ("main runtime 0ms..4ms cudaMalloc", "allocator"),
        ("main gc 0ms..4ms Python GC", "gc"),
        ("main op 0ms..4ms TorchDynamo Cache Lookup", "compile"),
        ("main python 0ms..4ms torch/serialization.py(900): save", "io"),
        ("main 0ms..4ms aten::item", "dispatch"),
        ("main 0ms..4ms aten::_local_scalar_dense", "sync"),
    ],
)
def test_what_the_host_does_names_the_idle_time(event: str, cause: str) -> None:
    """An idle device's 4 ms go to what the driving thread is in."""
    found = causes(
        DEVICE
        + f"""
        steps 2 x 10ms
          {event}
          main 4ms..4.1ms aten::mm -> stream 7 4.1ms..10ms ampere_sgemm
        """
    )
    assert found[cause] == pytest.approx(8 * MS, abs=0.2 * MS + 1)


def test_other_threads_explain_nothing() -> None:
    """Operators on a thread that launches nothing do not make an unexplained gap dispatching."""
    text = (
        DEVICE
        + """
        steps 2 x 10ms
          main 5ms..5.5ms aten::mm -> stream 7 5.5ms..10ms ampere_sgemm
        """
    )
    more = text + "  thread other 0ms..5ms aten::normal_\n"
    assert causes(text) == causes(more)


def test_on_the_cpu_each_moment_goes_to_the_innermost_operator() -> None:
    """Own time of work computes, own time of wrappers is overhead, Python is what lies between."""
    assert causes(
        """
        steps 2 x 10ms
          main 0ms..3ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
          main 0.5ms..2ms aten::stack
          main 3ms..8ms aten::conv2d
          main 3.1ms..7.9ms aten::mkldnn_convolution
          main 8.1ms..9ms aten::copy_
          main 9ms..9.01ms aten::add
        """
    ) == {
        "data_loading": 6 * MS,
        "compute": int(9.6 * MS),
        "memop": int(1.8 * MS),
        "tiny": int(0.42 * MS),
        "py_short": int(0.2 * MS),
        "unexplained": int(1.98 * MS),
    }


def test_on_the_cpu_autograd_and_collectives_count_and_helpers_do_not() -> None:
    """The backward thread drives the step; a backend's thread counts where the driving threads do nothing."""
    assert causes(
        """
        steps 2 x 10ms
          main 0ms..2ms aten::addmm
          backward 2ms..6ms autograd::engine::evaluate_function: AddmmBackward0
          backward 2ms..6ms aten::mm
          thread gloo region 5ms..9ms gloo:all_reduce
          thread helper 9ms..10ms aten::mm
        """
    ) == {"compute": 12 * MS, "comm": 6 * MS, "unexplained": 2 * MS}


def test_on_the_cpu_a_receive_lasts_until_it_is_awaited() -> None:
    """The region begins in a call of 0.1 ms and ends 5 ms later on the same thread; 2 ms of that compute hides."""
    found = causes("""
        steps 2 x 10ms
          main 0ms..2ms aten::mm
          main op 2ms..2.1ms c10d::recv_
          main region 2.05ms..7ms gloo:recv
          main 3ms..5ms aten::mm
          main 7ms..10ms aten::mm
    """)
    assert found["comm"] == 2 * 3 * MS
    assert found["compute"] == 2 * 7 * MS


def test_parts_that_the_author_named_are_not_work() -> None:
    """An operator around hundreds of others is a name for them: its own time is Python's, not the operator's."""
    text = """
        steps 1 x 10ms
          main op 0ms..10ms NAME
          main 0ms..0.02ms xMANY every 0.03ms aten::add
    """
    assert "compute" not in causes(text.replace("NAME", "training_part").replace("MANY", "300"))
    few = text.replace("NAME", "MyFunction").replace("MANY", "3")
    assert causes(few)["compute"] == 10 * MS - 3 * 20_000


def test_small_operators_in_the_optimiser_are_the_optimisers() -> None:
    """Tiny operators, and the Python between them, inside Optimizer.step are told apart."""
    found = causes(
        """
        steps 2 x 10ms
          main 0ms..5ms aten::addmm
          main 5ms..10ms Optimizer.step#SGD.step
          main 5ms..5.01ms x500 every 0.01ms aten::add_
        """
    )
    assert found["optimizer"] == 10 * MS


def test_every_cause_has_a_class_or_none_and_a_share_that_can_be_won() -> None:
    """Weights are shares; causes without a class win nothing, except time given to other ranks."""
    for name, cause in CAUSES.items():
        assert 0 <= cause.recoverable <= 1
        assert cause.bottleneck in (None, *Bottleneck)
        assert name == "comm_wait" or (cause.bottleneck is not None) == (cause.recoverable > 0)


@pytest.mark.parametrize(("gap_ms", "moved_ms"), [(18, 8), (4, 2)])
def test_gaps_are_explained_by_the_window_with_frames(gap_ms: int, moved_ms: int) -> None:
    """8 of 10 ms nobody explains; frames hold 18 of 20 ms in the deep window, more than enough, or 4 of 20: a fifth."""
    (light,) = sketch("steps 2 x 10ms\n  main 0ms..2ms aten::mm\n")
    (deep,) = sketch(
        f"with stacks\nsteps 1 x 20ms\n  main 0ms..20ms train.py(8): main\n  main 0ms..{20 - gap_ms}ms aten::mm\n"
    )
    alone, both = StepLedger.of(Rank(light)), StepLedger.of(Rank(replace(light, deep=deep)))
    assert alone.mean_ns("unexplained") == 8_000_000
    assert both.mean_ns("py_stack") == pytest.approx(moved_ms * 1_000_000, abs=2)
    assert both.mean_ns("py_stack", "unexplained") == 8_000_000
    assert (both.ns.sum(axis=0) == both.step_ns).all()


BUSY = """
    steps 4 x 20ms
      main 0ms..0.005ms x400 every 0.01ms aten::add
      main 5ms..9ms aten::mm
"""


def test_a_call_that_stands_still_once_is_no_work_and_no_overhead() -> None:
    """Ten milliseconds in one of 1601 additions are the machine's; the rest is as without them."""
    calm = causes(BUSY)
    stalled = causes(
        BUSY.replace("steps 4 x", "steps 3 x") + BUSY.replace("steps 4", "steps 1") + "main 9ms..19ms aten::add"
    )
    assert stalled.pop("stall") == 10 * MS
    assert {cause: stalled[cause] for cause in ("tiny", "compute")} == {
        cause: calm[cause] for cause in ("tiny", "compute")
    }


def test_a_long_call_in_every_step_is_work() -> None:
    """A large addition among small ones, in each step: computing, whatever the median says."""
    found = causes(BUSY + "main 9ms..19ms aten::add")
    assert "stall" not in found
    assert found["compute"] >= 4 * 4 * MS


def test_long_calls_in_every_other_step_are_work() -> None:
    """Where large and small batches take turns the large ones are the job: 10 ms in two of four steps all count."""
    one = BUSY.replace("steps 4", "steps 1")
    found = causes((one + "main 9ms..19ms aten::add\n" + one) * 2)
    assert "stall" not in found
    calm = causes(one * 4)
    assert found["tiny"] + found["compute"] == calm["tiny"] + calm["compute"] + 2 * 10 * MS


def test_stalls_leave_the_shares() -> None:
    """Half of a step that stands still halves no share of the rest."""
    ledger = StepLedger(
        causes=("stall", "compute", "unexplained"),
        ns=np.array([[10 * MS], [8 * MS], [2 * MS]]),
        step_ns=np.array([20 * MS]),
        on_device=False,
        busy_ns=np.array([8 * MS]),
        marked=True,
    )
    assert (ledger.mean_step_ns, ledger.share("compute")) == (10 * MS, 0.8)
