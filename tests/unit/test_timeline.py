"""Timeline: steps, window, launch links and the waits for the loader, on sketches worked out by hand."""

import numpy as np

from uncork.intervals import covered_ns
from uncork.nesting import nest
from uncork.steps import count_blind
from uncork.testing import sketch
from uncork.timeline import Timeline

MS = 1_000_000


def timeline(text: str) -> Timeline:
    """Return the timeline of a sketch of one rank."""
    (recording,) = sketch(text)
    return Timeline(recording)


def test_marked_steps_are_the_marks() -> None:
    """Steps begin and end with their marks, in order, when the device is done by then."""
    steps = timeline("""
        device NVIDIA A100-SXM4-80GB
        steps 3 x 10ms
          main 1ms..2ms aten::mm -> stream 7 2ms..8ms ampere_sgemm
    """).steps
    assert steps.marked
    assert steps.names == ("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3")
    assert steps.dur_ns.tolist() == [10 * MS] * 3
    assert np.all(steps.start_ns[1:] == steps.end_ns[:-1])
    assert steps.ends_early_share == 0


def test_last_step_reaches_to_the_end_of_what_it_launched() -> None:
    """Work that outlives the last mark by little belongs to the last step."""
    steps = timeline("""
        device NVIDIA A100-SXM4-80GB
        steps 4 x 10ms
          main 8ms..9ms aten::mm -> stream 7 9ms..11ms ampere_sgemm
    """).steps
    assert steps.dur_ns.tolist() == [10 * MS, 10 * MS, 10 * MS, 11 * MS]
    assert steps.ends_early_share == 1 / 41


def test_steps_of_a_host_that_runs_ahead_are_measured_on_the_device() -> None:
    """Host steps of 1 ms with 5 ms of device work each become steps of 5 ms (the first has the launch before it)."""
    steps = timeline("""
        device NVIDIA A100-SXM4-80GB
        steps 3 x 1ms
          main op 0ms..0.5ms a
        once
          main -2.9ms..-2.8ms aten::mm -> stream 7 -2.5ms..2.5ms ampere_sgemm
          main -1.9ms..-1.8ms aten::mm -> stream 7 2.5ms..7.5ms ampere_sgemm
          main -0.9ms..-0.8ms aten::mm -> stream 7 7.5ms..12.5ms ampere_sgemm
    """).steps
    assert steps.dur_ns.tolist() == [int(5.5 * MS), 5 * MS, 5 * MS]
    assert steps.ends_early_share == 12.5 / 15.5


def test_without_marks_the_window_runs_from_the_first_launching_operator_to_the_last_device_end() -> None:
    """What the host does before, and after, is outside; the outermost operator counts."""
    found = timeline("""
        device NVIDIA A100-SXM4-80GB
        once
          main op 0ms..5ms set_up
          main 10ms..12ms aten::linear
          main 10.5ms..11ms aten::addmm -> stream 7 10.8ms..15ms ampere_sgemm
          main op 20ms..30ms tear_down
    """)
    start, end = found.window
    assert not found.steps.marked
    assert end - start == 5 * MS
    assert start == found.host.start_ns[found.events.name_is("aten::linear")[found.host.row]][0]


def test_window_takes_in_the_loader_that_ran_before_the_first_launch() -> None:
    """A wait for the loader before the first kernel belongs to the window."""
    start, end = timeline("""
        device NVIDIA A100-SXM4-80GB
        once
          main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
          main 10ms..11ms aten::mm -> stream 7 11ms..15ms ampere_sgemm
    """).window
    assert end - start == 15 * MS


def test_a_first_kernel_long_after_its_launch_starts_the_window_itself() -> None:
    """A kernel that waited 6 ms on an empty record queued behind work from before the recording."""
    found = timeline("""
        device NVIDIA A100-SXM4-80GB
        once
          main 0ms..0.1ms aten::mm -> stream 7 6ms..9ms ampere_sgemm
    """)
    assert found.window[1] - found.window[0] == 3 * MS


def test_stray_records_without_launches_are_outside() -> None:
    """One tiny kernel 463 ms before everything else, without any launch, does not stretch the window."""
    found = timeline("""
        device NVIDIA A100-SXM4-80GB
        once
          stream 7 0ms..0.01ms stray
          stream 7 463ms..470ms ampere_sgemm
          stream 7 471ms..480ms ampere_sgemm
    """)
    assert found.window[1] - found.window[0] == 17 * MS


def test_a_stray_record_before_linked_work_starts_no_window() -> None:
    """The first kernel after the launch counts, 6 ms on; a fill 463 ms before it, without a launch, does not."""
    found = timeline("""
        device NVIDIA A100-SXM4-80GB
        once
          stream 7 0ms..0.01ms memset_kernel
          main 463ms..463.1ms aten::mm -> stream 7 469ms..472ms ampere_sgemm
    """)
    assert found.window[1] - found.window[0] == 3 * MS


def test_marks_that_nothing_links_to_the_device_become_one_window() -> None:
    """Two steps of 2 ms and 40 ms of device work without launches: one window to the device's end."""
    text = """
        device NVIDIA A100-SXM4-80GB
        steps 2 x 2ms
          main 0ms..1ms aten::mm
        once
          stream 7 0ms..40ms ampere_sgemm
    """
    steps = timeline(text).steps
    assert (steps.marked, steps.dur_ns.tolist()) == (False, [44 * MS])
    beside = timeline(text.replace("0ms..40ms", "-3ms..-1ms")).steps
    assert (beside.marked, beside.dur_ns.tolist()) == (True, [2 * MS] * 2)


def test_without_a_device_the_window_is_all_host_events() -> None:
    """A CPU-only recording is looked at from its first operator to its last."""
    start, end = timeline("""
        once
          main 1ms..3ms aten::mm
          main 5ms..9ms aten::add
    """).window
    assert end - start == 8 * MS


def test_launches_and_operators_of_device_work() -> None:
    """Each kernel is linked to its runtime call and to the operator around that."""
    found = timeline("""
        device NVIDIA A100-SXM4-80GB
        steps 1 x 10ms
          main 1ms..2ms aten::linear
          main 1.2ms..1.8ms aten::addmm -> stream 7 2ms..3ms ampere_sgemm
    """)
    host, table = found.host, found.events
    assert table.names(host.row[found.device.launch]) == ["cudaLaunchKernel"]
    assert table.names(host.row[found.launch_op]) == ["aten::addmm"]


def test_loader_waits_are_those_of_the_main_thread() -> None:
    """The loader's next on the main thread counts, one on another thread does not."""
    waits = timeline("""
        steps 2 x 10ms
          main 0ms..4ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
          main 4ms..9ms aten::mm
          thread prefetch 5ms..9ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    """).loader_waits
    assert (waits[:, 1] - waits[:, 0]).tolist() == [4 * MS, 4 * MS]


def test_children_that_outlive_their_parent_are_cut_and_counted() -> None:
    """A broken recording's child ends with its parent; self times still sum to the top slices' time."""
    (recording,) = sketch("""
        once
          main op 0ms..10ms outer
          main op 6ms..12ms inner
    """)
    table = recording.events
    assert table is not None
    slices = nest(table, np.flatnonzero(table.name_is("outer") | table.name_is("inner")))
    assert slices.clipped == 1
    assert slices.end_ns.tolist() == [slices.start_ns[0] + 10 * MS] * 2
    assert slices.self_ns.tolist() == [6 * MS, 4 * MS]


def test_first_steps_many_times_as_long_are_left_out_as_warm_up() -> None:
    """A first step of 100 ms before three of 10 ms is left out; one that only waited for the loader is not."""
    text = """
        steps 1 x 100ms
          main 0ms..95ms WHAT
        steps 3 x 10ms
          main 0ms..9ms aten::mm
    """
    warm = timeline(text.replace("WHAT", "aten::mm")).steps
    assert warm.names == ("ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4")
    assert warm.left_out_ns == (100 * MS,)
    loading = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    assert timeline(text.replace("WHAT", loading)).steps.left_out_ns == ()


BLIND = """
    device NVIDIA A100-SXM4-80GB
    steps 2 x 10ms
      main 1ms..2ms aten::mm
      main runtime 1.2ms..1.3ms cudaLaunchKernel {"correlation": 9}
    steps 3 x 10ms
      main 1ms..2ms aten::mm -> stream 7 1.5ms..9.5ms ampere_sgemm
"""


def test_first_steps_that_lost_all_their_kernels_are_left_out() -> None:
    """Two steps launch a kernel each that is not recorded, three have theirs: the device works 8 of 10 ms in those."""
    found = timeline(BLIND)
    assert found.steps.names == ("ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5")
    assert (found.steps.blind, found.steps.left_out_ns) == (2, (10 * MS, 10 * MS))
    assert covered_ns(found.device_busy, *found.window) == 24 * MS


def test_a_step_that_captures_a_graph_has_lost_nothing() -> None:
    """What a capture launches runs when the graph is replayed, so no kernel of it is missed: all five steps stay."""
    begin, end = "main runtime 1.1ms..1.15ms cudaStreamBeginCapture", "main runtime 1.8ms..1.9ms cudaStreamEndCapture"
    found = timeline(BLIND.replace("    steps 3", f"      {begin}\n      {end}\n    steps 3"))
    assert (len(found.steps), found.steps.blind) == (5, 0)


def test_steps_are_blind_only_at_the_beginning_and_where_others_see() -> None:
    """A step that launches nothing ends the blind ones; where no kernel at all is recorded, none is left out."""
    start, end = np.array([0, 10, 20, 30]), np.array([10, 20, 30, 40])
    launched = np.array([1, 11, 21, 31, 99])
    for recorded, blind in (([0, 0, 1, 1, 0], 2), ([0, 1, 0, 1, 0], 1), ([1, 0, 0, 1, 0], 0), ([0, 0, 0, 0, 1], 0)):
        assert count_blind(start, end, launched, np.array(recorded, bool)) == blind
    assert count_blind(start, end, np.array([1, 21]), np.array([False, True])) == 1
