"""What a recording lost: launches without records, operators without those they always call, and what may be said."""

from dataclasses import replace

import numpy as np
import pytest

from uncork.events import Kind
from uncork.findings import Bottleneck, Verdict
from uncork.locale import say
from uncork.measure import Rank, measure
from uncork.measure.losses import hollow_share, lost_kernels_share, lost_share, twice_share
from uncork.pipeline import analyze_recordings
from uncork.quality import gate
from uncork.testing import sketch
from uncork.timeline import Timeline
from uncork.verdict import judge

DEVICE = "device NVIDIA A100-SXM4-80GB\nsteps 4 x 10ms\n"


def timeline(text: str) -> Timeline:
    """Return the timeline of a sketch's only rank."""
    return Rank(sketch(text)[0]).timeline


def verdict(text: str) -> Verdict:
    """Return the verdict on a sketch, gate included."""
    measured = [measure(one) for one in sketch(text)]
    return judge(measured, range(len(measured)), [], gate(measured, range(len(measured))))


def test_launches_without_a_kernel_are_counted() -> None:
    """Of eight launches a step two have no kernel; what a graph's capture launches runs later and is none."""
    lossy = (
        DEVICE
        + """
        main 0ms..0.01ms x6 every 1ms aten::mm -> stream 7 0.1ms..0.9ms ampere_sgemm
        main 0.5ms..0.51ms x2 every 1ms cudaLaunchKernel
    """
    )
    assert lost_kernels_share(timeline(lossy)) == lost_share(timeline(lossy)) == 0.25
    captured = lossy.replace("main 0.5ms", "main runtime 0.4ms..0.41ms cudaStreamBeginCapture\nmain 0.5ms")
    captured += "\nmain runtime 1.6ms..1.61ms cudaStreamEndCapture"
    # The second launch of matrices, at 1 ms, lies within the capture too, and has its kernel.
    assert lost_kernels_share(timeline(captured)) == 0


def test_launches_after_the_devices_last_record_are_lost_and_queued_ones_are_not() -> None:
    """The device stops in the second step while the host launches on; work that still queues at the end is none."""
    stopped = """
        device NVIDIA A100-SXM4-80GB
        steps 2 x 10ms
          main 0ms..0.01ms x10 every 1ms aten::mm -> stream 7 0.1ms..0.9ms ampere_sgemm
        steps 2 x 10ms
          main 0ms..0.01ms x10 every 1ms cudaLaunchKernel
    """
    assert lost_kernels_share(timeline(stopped)) == 0.5
    queued = """
        device NVIDIA A100-SXM4-80GB
        steps 1 x 10ms
          main 0ms..0.01ms x25 every 0.1ms aten::mm -> stream 7 0.1ms..0.19ms ampere_sgemm
          main 3ms..3.01ms aten::mm -> stream 7 3.1ms..9.9ms ampere_sgemm
          main 4ms..4.01ms x25 every 0.1ms cudaLaunchKernel
    """
    assert lost_kernels_share(timeline(queued)) == 0


def test_operators_without_what_they_always_call_are_counted() -> None:
    """Of five conversions a step one has no copy below it; of nine in all there are too few to say."""
    text = (
        "steps {} x 10ms\n"
        """
        main 0ms..0.5ms x5 every 1ms aten::_to_copy
        main 0.1ms..0.4ms x4 every 1ms aten::copy_
    """
    )
    assert hollow_share(timeline(text.format(4))) == pytest.approx(0.2)
    assert hollow_share(timeline(text.format(1))) == 0


IDLE = (
    DEVICE
    + """
    main 0ms..0.01ms x30 every 0.2ms aten::mm -> stream 7 0.05ms..0.1ms ampere_sgemm
    main 0.1ms..0.11ms x{} every 0.2ms cudaLaunchKernel
    main 0ms..9.9ms aten::add
"""
)


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        (0, "verdict.framework.dispatch.device"),
        (10, "verdict.framework.dispatch.device"),
        (40, "verdict.undetermined.lost-events"),
    ],
)
def test_lost_work_is_not_taken_for_idle_time(lost: int, expected: str) -> None:
    """15 % busy of what is recorded: a quarter lost may hide 5 % more and the verdict stands; over half forbids it."""
    assert (
        verdict(
            IDLE.format(lost) if lost else IDLE.replace("    main 0.1ms..0.11ms x{} every 0.2ms cudaLaunchKernel\n", "")
        ).summary.id
        == expected
    )


def test_idle_time_that_lost_records_could_fill_carries_no_verdict() -> None:
    """45 % busy, 25 of 55 launches lost: those may fill 37 % more, and then computing is the larger part."""
    text = (
        DEVICE
        + """
        main 0ms..0.01ms x30 every 0.2ms aten::mm -> stream 7 0.05ms..0.2ms ampere_sgemm
        main 0.1ms..0.11ms x25 every 0.2ms cudaLaunchKernel
        main 0ms..9.9ms aten::add
    """
    )
    assert verdict(text).summary.id == "verdict.undetermined.lost-events"
    whole = text.replace("main 0.1ms..0.11ms x25 every 0.2ms cudaLaunchKernel", "")
    assert verdict(whole).bottleneck is Bottleneck.FRAMEWORK


def test_findings_speak_of_no_share_of_a_step_whose_events_are_mostly_lost() -> None:
    """The rules that speak of steps are not assessed, for want of what was lost; no finding promises a gain."""
    found = analyze_recordings(sketch(IDLE.format(40)))
    assert not [one.rule for one in found.findings if one.gain.high]
    assert "complete" in {missing for one in found.not_assessed for missing in one.missing}


def test_streams_that_do_two_things_at_once_carry_no_verdict() -> None:
    """Two kernels of 4 ms begin 1 ms apart: of 8 ms 3 are double; 4 x 10 kernels of 9 ms fill 48 ms with 360."""
    first, second = (
        "main 0ms..0.01ms aten::mm -> stream 7 1ms..5ms a",
        "main 1ms..1.01ms aten::mm -> stream {} 2ms..6ms a",
    )
    assert twice_share(timeline(f"{DEVICE}{first}\n{second.format(7)}")) == pytest.approx(3 / 8)
    assert twice_share(timeline(f"{DEVICE}{first}\n{second.format(9)}")) == 0.0
    ten = "".join(f"\n main {at}ms..{at}.01ms aten::mm -> stream 7 {at}ms..{at + 9}ms a" for at in range(10))
    assert twice_share(timeline(DEVICE + ten)) == pytest.approx(1 - 48 / 360)
    assert verdict(DEVICE + ten).summary.id == "verdict.undetermined.device-times-impossible"


@pytest.mark.parametrize(
    ("flat", "whole_us", "severity"),
    [(0, False, None), (1, False, "warning"), (11, False, "blocking"), (10, True, None), (11, True, "blocking")],
)
def test_work_without_a_length_carries_no_verdict(flat: int, whole_us: bool, severity: str | None) -> None:
    """Of forty kernels none lasts 0 ns: one is told, eleven forbid. In whole microseconds ten (25 %) may be short."""
    (recording,) = sketch(f"{DEVICE}  main 0ms..0.01ms x10 every 1ms aten::mm -> stream 7 0.1ms..0.9ms ampere_sgemm")
    events = recording.events
    assert events is not None
    ts_ns, dur_ns = (times // 1000 * 1000 + (0 if whole_us else 7) for times in (events.ts_ns, events.dur_ns))
    dur_ns[np.flatnonzero(events.of_kind(Kind.KERNEL))[:flat]] = 0
    report = analyze_recordings([replace(recording, events=replace(events, ts_ns=ts_ns, dur_ns=dur_ns))])
    assert {one.id: one.severity for one in report.quality}.get("no-lengths") == severity
    assert (report.verdict.summary.id == "verdict.undetermined.no-lengths") is (severity == "blocking")
    if severity == "blocking":
        assert not [one.rule for one in report.findings if one.gain.high]
        assert "lengths" in {missing for one in report.not_assessed for missing in one.missing}


def test_names_that_the_profiler_could_not_write_are_told_with_what_brings_them_back() -> None:
    """Two regions a step lost their names in four steps; a kernel that is called so has lost none."""
    nameless = "steps 4 x 10ms\n  main region 0ms..1ms x2 every 2ms unknown\n  main 0ms..1ms x2 every 2ms aten::mm\n"
    kernel = DEVICE + "  main 0ms..0.01ms x10 every 1ms aten::mm -> stream 7 0.1ms..0.9ms unknown\n"
    for text, lost in ((nameless, 8), (nameless.replace("unknown", "unknown region"), None), (kernel, None)):
        found = {one.id: one.params for one in gate([measure(one) for one in sketch(text)], [0])}
        assert found.get("names-lost", {}).get("names") == lost, text
    assert "uncork run" in say("en", "quality.names-lost.fix")
