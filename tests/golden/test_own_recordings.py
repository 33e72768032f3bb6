"""Three small loops that the project recorded itself, with torch 2.13 on one thread of a CPU; a count by hand beside.

``loader``: a data set in plain Python, no workers. ``conv``: two 5×5 convolutions. ``tiny``: operators on 16 numbers.
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
