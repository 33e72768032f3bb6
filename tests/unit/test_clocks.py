"""Clocks of host and device: how far apart they are at least, and what is said of it."""

import json
from pathlib import Path

import pytest

from uncork import readers
from uncork.locale import LANGUAGES
from uncork.measure.clocks import apart_ns
from uncork.pipeline import analyze_recordings
from uncork.recording import Recording
from uncork.report import spell, to_json
from uncork.testing import write_traces
from uncork.timeline import Timeline

WAIT = "  main 3ms..9.1ms cudaDeviceSynchronize\n"
STEPS = """
device NVIDIA A100-SXM4-80GB
steps 4 x 10ms
  main 0ms..0.1ms x8 every 0.1ms aten::add
  main 0.9ms..1ms aten::mm -> stream 7 1ms..9ms ampere_sgemm
"""


def recorded(tmp_path: Path, ahead_ms: float, wait: str = WAIT) -> Recording:
    """Return steps whose kernel runs from 1 to 9 ms by the host's clock, told by one that is ahead."""
    (path,) = write_traces(STEPS + wait, tmp_path)
    trace = json.loads(path.read_text("utf-8"))
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel" or (event.get("cat") == "ac2g" and event["ph"] == "f"):
            event["ts"] += ahead_ms * 1000
    path.write_text(json.dumps(trace), "utf-8")
    (recording,) = readers.read(path)
    return recording


@pytest.mark.parametrize(
    ("ahead_ms", "apart_ms"),
    [
        (0, 0),
        (5000, 4999.9),  # the wait for the device ends before what it waits for
        (0.5, 0.4),  # it ends 0.1 ms later than the kernel, and could have ended at once
        (-5000, -4999.933333),  # launched a third into an operator of 0.1 ms, 0.0667 ms before the kernel
        (0.1, 0),
    ],
)
def test_how_far_the_clocks_are_apart_is_what_cannot_be(tmp_path: Path, ahead_ms: float, apart_ms: float) -> None:
    """Nothing begins before its launch, and no wait for the device ends before the work that was launched before it."""
    assert apart_ns(Timeline(recorded(tmp_path, ahead_ms))) == pytest.approx(apart_ms * 1e6, abs=1)


def test_without_a_wait_work_that_comes_late_is_a_queue(tmp_path: Path) -> None:
    """Nothing shows that the clock is ahead where nobody waits for the device; a stream's wait is not for all of it."""
    for wait in ("", "  main 3ms..9ms cudaStreamSynchronize\n"):
        assert apart_ns(Timeline(recorded(tmp_path, 5000, wait))) == 0


@pytest.mark.parametrize("ahead_ms", [5000, -5000])
def test_clocks_far_apart_are_told_as_such(tmp_path: Path, ahead_ms: float) -> None:
    """Five seconds: no verdict, no share of a step, and the sentence says why; in half a millisecond of ten nothing."""
    report = analyze_recordings([recorded(tmp_path, ahead_ms)])
    assert report.verdict.summary.id == "verdict.undetermined.device-clock-apart"
    assert [one for one in report.findings if one.share] == []
    for lang, clock in zip(LANGUAGES, ("clock", "时钟"), strict=True):
        assert clock in spell(report.verdict.summary, lang)
        assert "5.00 s" in str(to_json(report, lang)["quality"])
    near = analyze_recordings([recorded(tmp_path, 0.5)])
    assert "device-clock-apart" not in {one.id for one in near.quality}
