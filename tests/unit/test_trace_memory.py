"""Memory over time from a trace's allocation events, held against sums by hand and against the events themselves."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tests.unit.rule_outcomes import found as rule_found
from uncork import readers
from uncork.measure import MissingEvidence, Rank
from uncork.measure.memory_use import MemoryUse
from uncork.measure.memory_views import MOST_POINTS, chosen
from uncork.measure.trace_memory import TraceMemory
from uncork.measure.views.curves import memory_curves
from uncork.testing import sketch

GIB = 1 << 30


def event(when: str, change: int, total: int, reserved: int, device: int = 1) -> str:
    """Return the line of an allocation event."""
    args = {"Device Type": device, "Device Id": 0, "Addr": 1, "Bytes": change}
    args |= {"Total Allocated": total, "Total Reserved": reserved} if total >= 0 else {}
    return f"  main {when} [memory] {json.dumps(args)}"


def trace_memory(*lines: str) -> TraceMemory:
    """Return the memory of a sketch with steps of 10 ms."""
    return TraceMemory.of(Rank(sketch("\n".join(lines))[0]))


HEAD = ("device NVIDIA A100-SXM4-80GB", "steps 3 x 10ms", "  main 0ms..2ms aten::mm", "  main 2ms..4ms aten::cat")


def test_r2_2_peak_reserved_and_churn():
    """Per step: 300 MB on top of 100 appear and go; the operator that was running then is named."""
    found = trace_memory(
        *HEAD, event("1ms", 100, 200, 900), event("3ms", 200, 400, 1000), event("5ms", -300, 100, 1000)
    )
    assert (found.peak_bytes, found.reserved_peak_bytes, found.start_bytes, found.end_bytes) == (400, 1000, 100, 100)
    assert found.peak_location.op == "aten::cat"
    assert found.step_bytes.tolist() == [200, 100, 100]
    assert found.step_peak_bytes.tolist() == [400, 400, 400]
    assert (found.asked_bytes_per_step, found.allocs_per_step) == (300, 2.0)


def test_memory_shared_with_workers_is_no_part_of_the_totals():
    """A batch of 96 is mapped before 32 are allocated and let go after: totals are 32, 48, 16 and 0, none negative.

    Torch tells of a mapping with a total of 0 and its size as reserved, of its end with both 0.
    """
    head = ["steps 1 x 10ms", "  main 0ms..9ms aten::mm"]
    lines = [event("1ms", 96, 0, 96, 0), event("2ms", 32, 32, 0, 0), event("3ms", 16, 48, 0, 0)]
    lines += [event("4ms", -96, 0, 0, 0), event("5ms", -32, 16, 0, 0), event("6ms", -16, 0, 0, 0)]
    (recording,) = sketch("\n".join(head + lines))
    found = TraceMemory.of(Rank(recording))
    assert (found.start_bytes, found.peak_bytes, found.end_bytes) == (0, 48, 0)
    assert found.allocated_bytes.tolist() == [32, 48, 16, 0]
    (curve,) = memory_curves(Rank(recording).timeline, "memory")
    assert {name: values.tolist() for name, (_, values) in curve.series.items()} == {
        "page.series.allocated": [32, 48, 16, 0]
    }
    with pytest.raises(MissingEvidence):
        trace_memory(*head, lines[0], lines[3])


def test_what_the_recorder_counted_divides_the_peak():
    """Of 400 bytes 100 are parameters, 100 gradients, 150 state: 50 are the rest; parts over the whole are none."""
    lines = [*HEAD, event("1ms", 100, 200, 900), event("3ms", 200, 400, 1000)]
    counted = ["setting parameter_bytes 100", "setting gradient_bytes 100", "setting optimizer_state_bytes 150"]
    parts = {row["category"]: row["bytes"] for row in trace_memory(*lines, *counted).content()["categories"]}
    assert parts == {"optimizer_state": 150, "parameter": 100, "gradient": 100, "rest": 50}
    assert trace_memory(*lines, "setting parameter_bytes 401").content()["categories"] == []


def test_r5_2_how_much_larger_a_batch_would_fit():
    """90 % of 3,000 bytes less 1,000 reserved are 1,700; a step adds 300: more than five besides its own."""
    lines = ['device NVIDIA A100 {"totalGlobalMem": 3000}', *HEAD[1:]]
    lines += [event("0ms", 0, 100, 900), event("3ms", 300, 400, 1000), event("5ms", -300, 100, 1000)]
    assert trace_memory(*lines).batch_ratio == pytest.approx(1 + 1_700 / 300)
    assert trace_memory(*HEAD, event("3ms", 200, 400, 1000)).batch_ratio is None


def test_changes_alone_are_added_up():
    """Before torch 1.10 events tell changes only: sizes count from the smallest."""
    found = trace_memory(*HEAD, event("1ms", 100, -1, 0), event("3ms", 200, -1, 0), event("5ms", -300, -1, 0))
    assert found.relative
    assert (found.peak_bytes, found.end_bytes, found.reserved_peak_bytes) == (300, 0, None)


def test_the_accelerator_comes_before_the_host():
    """With events of both, the device's memory is shown, however little it is."""
    found = trace_memory(*HEAD, event("1ms", 7, 7, 8), event("2ms", 10**9, 10**9, 0, device=0))
    assert (found.on_device, found.peak_bytes) == (True, 7)
    alone = trace_memory(*HEAD, event("2ms", 10**9, 10**9, 0, device=0))
    assert (alone.on_device, alone.peak_bytes, alone.reserved_peak_bytes) == (False, 10**9, None)


def test_without_events_it_is_missing():
    """No allocation events: what to record is said, not: 0 bytes."""
    with pytest.raises(MissingEvidence, match="memory"):
        trace_memory(*HEAD)


def test_r3_2_use_of_the_device_is_held_against_its_size():
    """38 of 40 GiB reserved; without a size in the recording nothing is said."""
    lines = [f'device NVIDIA A100 {{"totalGlobalMem": {40 * GIB}}}', *HEAD[1:], event("1ms", 1, 1, 38 * GIB)]
    use = MemoryUse.of(Rank(sketch("\n".join(lines))[0]))
    assert (use.source, use.used_bytes, use.capacity_bytes) == ("trace", 38 * GIB, 40 * GIB)
    with pytest.raises(MissingEvidence, match="device"):
        MemoryUse.of(Rank(sketch("\n".join([*HEAD, event("1ms", 1, 1, 1)]))[0]))


def test_a_failed_request_tells_the_devices_size():
    """What the allocator held and what was left on the device make its size."""
    lines = ("snapshot reserved 7GiB", "snapshot old 6GiB", "snapshot oom 4GiB free 1GiB")
    use = MemoryUse.of(Rank(sketch("\n".join(lines))[0]))
    assert (use.source, use.used_bytes, use.capacity_bytes) == ("snapshot", 7 * GIB, 8 * GIB)


def test_a_real_trace_equals_its_own_events(shared: Path):
    """The peak of a real recording is the largest total that its events name."""
    path = shared / "corpus" / "recordings" / "cpu-2.13" / "convnet_memory.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    totals = [one["args"]["Total Allocated"] for one in events if one["name"] == "[memory]"]
    found = TraceMemory.of(Rank(readers.read(path)[0]))
    assert found.peak_bytes == max(totals)
    assert found.end_bytes == totals[-1]


def test_the_curve_keeps_peak_first_and_last():
    """However long: at most so many points, the extremes among them."""
    values = np.abs(np.random.default_rng(7).integers(0, 10**6, 50_000))
    values[31_337] = 10**7
    places = chosen(values)
    assert len(places) <= MOST_POINTS
    assert {0, 31_337, 49_999} <= set(places.tolist())
    assert (np.diff(places) > 0).all()


def test_r2_2_growth_names_who_keeps_what_it_made():
    """Each step makes 70 bytes in mm that stay and 500 in cat that go: what outlives steps 2 and 3 is mm's 140."""
    lines, total = ["device NVIDIA A100-SXM4-80GB"], 0
    for step in range(4):
        start = 10 * step
        lines += [
            f"  main {start}ms..{start + 10}ms ProfilerStep#{step}",
            f"  main {start}ms..{start + 2}ms aten::mm",
            f"  main {start + 2}ms..{start + 6}ms aten::cat",
        ]
        for when, address, change in ((1, 100 + step, 70), (3, 7, 500), (5, 7, -500)):
            total += change
            args = {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": change, "Total Allocated": total}
            lines.append(f"  main {start + when}ms [memory] {json.dumps(args)}")
    found = trace_memory(*lines)
    assert found.step_bytes.tolist() == [70, 70, 140, 210]
    assert (found.keeper.op, found.kept_bytes) == ("aten::mm", 140)


def test_what_if_from_events_and_counted_parts():
    """Of 1000 between steps 300 are parameters and 500 state; a step adds 100 of gradients and 900 that grow."""
    mib = 1 << 20
    head = ['device NVIDIA A100 {"totalGlobalMem": %d}' % (4000 * mib), "steps 3 x 10ms", "  main 0ms..2ms aten::mm"]  # noqa: UP031 - braces
    counted = [f"setting parameter_bytes {300 * mib}", f"setting gradient_bytes {300 * mib}",
               f"setting optimizer_state_bytes {500 * mib}"]  # fmt: skip
    found = trace_memory(
        *head, event("0ms", 0, 1000 * mib, 2000 * mib), event("3ms", 1000 * mib, 2000 * mib, 2000 * mib),
        event("5ms", -1000 * mib, 1000 * mib, 2000 * mib), *counted,
    )  # fmt: skip
    saved = {one.change: one for one in found.savings}
    # 200 of the gradients fit beside parameters and state between steps, so 100 of what a step adds are gradients.
    assert (saved["checkpointing"].low_bytes, saved["checkpointing"].high_bytes) == (450 * mib, 720 * mib)
    assert saved["optimizer_8bit"].high_bytes == 375 * mib
    assert saved["shard_2"].high_bytes == (150 + 150 + 250) * mib
    # 90 % of 4000 less 2000 reserved are 1600 of room for what grows: 900, or 180 once recomputed.
    assert saved["optimizer_8bit"].batch_ratio == pytest.approx(1 + (1600 + 375) / 900)
    assert saved["checkpointing"].batch_ratio == pytest.approx((1600 + 900) / 180)
    assert found.content()["batch_time_share"] == pytest.approx(found.fixed_share * (1 - 1 / found.batch_ratio))


def test_a_full_device_is_told_what_would_free_most():
    """950 of 1000 MiB reserved: recomputing frees half to four fifths of the 400 MiB that a step adds."""
    mib = 1 << 20
    head = ['device NVIDIA A100 {"totalGlobalMem": %d}' % (1000 * mib), "steps 3 x 10ms", "  main 0ms..2ms aten::mm"]  # noqa: UP031 - braces
    lines = [event("0ms", 0, 500 * mib, 950 * mib), event("3ms", 400 * mib, 900 * mib, 950 * mib),
             event("5ms", -400 * mib, 500 * mib, 950 * mib)]  # fmt: skip
    finding = rule_found("near-capacity", "\n".join([*head, *lines]))
    assert (finding.params["saved_low_bytes"], finding.params["saved_bytes"]) == (200 * mib, 320 * mib)
    assert finding.params["saving"] == "@what_if.checkpointing"
