"""Recordings of one rank, one after the other, as a profiler's repeating schedule writes them."""

from dataclasses import replace

from uncork.pipeline import analyze_recordings
from uncork.testing import sketch

TWICE = """
    steps 4 x 10ms
      main 0ms..9ms aten::mm
"""


def test_of_ranks_recorded_again_the_last_recordings_count() -> None:
    """Two ranks, two cycles of a repeating schedule: two ranks, not four; where the job may have four, all count."""
    (sound,) = sketch(TWICE)
    cycles = [replace(sound, rank=rank, world_size=2, source=f"{rank}.{cycle}") for rank in (0, 1) for cycle in (0, 1)]
    report = analyze_recordings(cycles)
    assert (report.run["ranks"], report.run["sources"]) == ([0, 1], ["0.1", "1.1"])
    told = {one.id: one for one in report.quality}["earlier-recordings"]
    assert (told.severity, told.params["earlier"], told.share_affected) == ("warning", 2, 0.5)
    assert analyze_recordings([replace(one, world_size=4) for one in cycles]).run["ranks"] == [0, 1, 2, 3]
    alone = analyze_recordings([replace(one, rank=0, world_size=1) for one in cycles])
    assert "earlier-recordings" not in [one.id for one in alone.quality]


def test_of_one_process_that_recorded_again_the_last_recording_counts() -> None:
    """A schedule's second cycle is no second rank; what overlaps, or ran in another process, is one."""
    early, late = (sketch(TWICE)[0] for _ in range(2))
    assert early.events is not None
    assert late.events is not None
    moved = replace(late.events, ts_ns=late.events.ts_ns + 50_000_000)
    after = replace(late, source="late", events=moved)
    for order in ((early, after), (after, early)):
        report = analyze_recordings(order)
        assert (report.run["ranks"], report.run["sources"]) == ([0], ["late"])
        assert {one.id: one for one in report.quality}["earlier-recordings"].params["earlier"] == 1
    assert analyze_recordings([early, late]).run["ranks"] == [0, 1]
    tracks = tuple(replace(one, pid=f"1{one.pid}") for one in moved.tracks)
    other = replace(after, events=replace(moved, tracks=tracks))
    assert analyze_recordings([early, other]).run["ranks"] == [0, 1]
    assert analyze_recordings([early, replace(after, world_size=2)]).run["ranks"] == [0, 1]
