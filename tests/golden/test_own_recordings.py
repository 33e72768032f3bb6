"""Small loops that the project recorded itself, with torch 2.13 on one thread of a CPU; a count by hand beside.

``loader``: a data set in plain Python, no workers. ``conv``: two 5×5 convolutions. ``tiny``: operators on 16 numbers.
``stages``: two ranks of a pipeline by hand (GPipe, gloo, four micro-batches), with one layer and with three.
"""

import gzip
import json
from pathlib import Path

import pytest

from uncork.findings import Bottleneck
from uncork.pipeline import analyze

HERE = Path(__file__).parent / "recordings"


def events(name: str) -> list[dict]:
    """Return the events of a recording as the standard library reads them."""
    with gzip.open(HERE / f"{name}.pt.trace.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)["traceEvents"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("loader", Bottleneck.DATA_LOADING), ("conv", Bottleneck.COMPUTE), ("tiny", Bottleneck.FRAMEWORK)],
)
def test_each_loop_has_its_bottleneck(name, expected):
    """The class that the loop was written for, with confidence."""
    report = analyze([HERE / f"{name}.pt.trace.json.gz"])
    assert report.verdict.bottleneck is expected
    assert report.verdict.confidence >= 0.8
    assert report.run["steps"] == 3
    assert report.run["events"] > 100


@pytest.mark.parametrize("name", ["loader", "conv", "tiny"])
def test_the_step_time_is_that_of_the_marks(name):
    """The ledger sums to the mean duration of the three ProfilerStep regions, to the nanosecond's rounding."""
    marks = [event["dur"] for event in events(name) if event.get("name", "").startswith("ProfilerStep#")]
    assert len(marks) == 3
    report = analyze([HERE / f"{name}.pt.trace.json.gz"])
    assert report.run["step_ns"] == pytest.approx(sum(marks) / 3 * 1000, abs=50)


def test_the_wait_for_data_is_the_loaders_own_time():
    """Summing the durations of the loader's next() by hand gives the ledger's entry."""
    waits = [event["dur"] for event in events("loader") if event.get("name", "").startswith("enumerate(DataLoader)")]
    report = analyze([HERE / "loader.pt.trace.json.gz"])
    (entry,) = [one for one in report.ledger if one.cause == "data_loading"]
    assert entry.ns_per_step == pytest.approx(sum(waits) / 3 * 1000, rel=0.01)
    assert report.findings[0].rule == "starved"


def test_the_convolutions_lead_the_table():
    """Forward and backward convolutions take most of the operators' own time."""
    report = analyze([HERE / "conv.pt.trace.json.gz"])
    top = {row["name"] for row in report.tables["operators"][:2]}
    assert top == {"aten::convolution_backward", "aten::mkldnn_convolution"}


def messages(rank: int) -> dict[str, list[tuple[float, float]]]:
    """Return when a rank is there for each message, and when it has passed, in µs, by ``send`` and ``recv``."""
    rows = sorted((one for one in events(f"stages/rank{rank}") if one.get("ph") == "X"), key=lambda one: one["ts"])
    calls = [one for one in rows if one["name"].startswith("c10d::")]
    regions = [one for one in rows if one["name"].startswith("gloo:")]
    found: dict[str, list[tuple[float, float]]] = {"send": [], "recv": []}
    for call, region in zip(calls, regions, strict=True):
        found[region["name"][5:]].append((call["ts"], region["ts"] + region["dur"]))
    return found


def test_stages_wait_no_longer_than_their_shared_clock_shows():
    """Both ranks ran on one machine, so their clocks agree; what is found without that lacks a little of it at most.

    How much: for each message the quickest one each way, by which clocks could differ.
    """
    report = analyze([HERE / f"stages/rank{rank}.pt.trace.json.gz" for rank in (0, 1)])
    (finding,) = [one for one in report.findings if one.rule == "stage-waits"]
    mine, theirs = messages(0), messages(1)
    ways = [(mine["send"], theirs["recv"]), (theirs["send"], mine["recv"])]
    assert [len(there) for way in ways for there in way] == [8] * 4
    waits_us = sum(
        max(0, min(late, end) - start)
        for way in ways
        for one, other in (way, way[::-1])
        for (start, end), (late, _) in zip(one, other, strict=True)
    )
    unsure_us = sum(min(end - start for (start, _), (_, end) in zip(*way, strict=True)) for way in ways)
    shown_us = waits_us / 2 / 2  # ranks, steps
    assert shown_us - 32 * unsure_us / 4 <= finding.cost_ns_per_step / 1000 <= shown_us
    assert finding.cost_ns_per_step / 1000 > 0.7 * shown_us
    assert finding.location.rank == 1
    assert str(finding.params["waits"]).startswith("0 → 1: ")
