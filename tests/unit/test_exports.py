"""Other forms that a report can be written in."""

import csv
import io
import json
from dataclasses import replace

import pytest

from tests.unit.reports import starved_report
from uncork.errors import UncorkError
from uncork.pipeline import analyze_recordings
from uncork.render import Options, renderers
from uncork.render.about_run import about
from uncork.testing import sketch

SKETCH = """
device NVIDIA A100-SXM4-80GB
with stacks
steps 2 x 10ms
  main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main 6ms..9ms train.py(7): step
  main 6.000001ms..6.5ms aten::mm -> stream 7 7ms..9.000003ms gemm_kernel
"""
HELD = "snapshot reserved 1GiB\nsnapshot alloc a 1MiB train.py:1:main\n"


@pytest.fixture(scope="module")
def report():
    """Return the report of two steps that wait 6 of 10 ms for data and compute for 2."""
    return analyze_recordings(sketch(SKETCH), views=True)


def test_perfetto_keeps_every_nanosecond_and_adds_the_findings(report):
    """Events stand where the sketch has them; verdict and findings have tracks of their own."""
    events = json.loads(renderers()["perfetto"](report, Options()), parse_float=str)["traceEvents"]
    kernels = [event for event in events if event.get("name") == "gemm_kernel"]
    assert [event["dur"] for event in kernels] == ["2000.003", "2000.003"]
    starts = [round(float(event["ts"]) * 1000) for event in kernels]
    assert starts[1] - starts[0] == 10_000_000
    tracks = {event["args"]["name"] for event in events if event.get("name") == "process_name"}
    assert tracks == {"uncork", "recording"}
    titles = [event["name"] for event in events if event["pid"] == 1 and event["ph"] == "X"]
    assert len(titles) == 1 + len(report.findings)
    assert "waits for the data loader" in titles[0]


def test_perfetto_draws_an_arrow_from_launch_to_kernel(report):
    """One arrow per launch: its start is the runtime call's, its end the kernel's."""
    events = json.loads(renderers()["perfetto"](report, Options()))["traceEvents"]
    ends = sorted(event["ts"] for event in events if event["ph"] == "f")
    kernels = sorted(event["ts"] for event in events if event.get("name") == "gemm_kernel")
    assert ends == kernels
    assert len([event for event in events if event["ph"] == "s"]) == len(kernels)


def test_speedscope_weights_sum_to_the_whole(report):
    """The device's two kernels of 2.000003 ms make up the device flame graph."""
    data = json.loads(renderers()["speedscope"](report, Options()))
    (device,) = [one for one in data["profiles"] if one["name"] == "stack: device_ns"]
    assert sum(device["weights"]) == device["endValue"] == 2 * 2_000_003
    names = [data["shared"]["frames"][index]["name"] for index in device["samples"][0]]
    assert names[0] == "train.py(7): step"


def test_csv_holds_all_tables_and_no_formulas():
    """Every row of every table; a name that a spreadsheet would run is made harmless."""
    report = starved_report()
    report.tables["operators"].append({"name": "=cmd()", "calls": 1})
    rows = list(csv.DictReader(io.StringIO(renderers()["csv"](report, Options()))))
    assert [row["name"] for row in rows] == ["aten::mm", "aten::add|<b>", "'=cmd()"]
    assert rows[0]["cpu_self_ns"] == "20000000"


def test_what_modules_hold_is_no_memory_over_time():
    """A run's modules are known without one recorded allocation: there is nothing to draw, and that is said."""
    report = replace(starved_report(), memory={"rank": 0, "modules": [{"module": "fc"}], "checkpointing": []})
    with pytest.raises(UncorkError, match="no memory in this recording"):
        renderers()["memory_timeline"](report, Options())


@pytest.mark.parametrize("form", ["perfetto", "speedscope"])
def test_a_report_without_events_says_what_to_give(form):
    """A saved report has no timeline any more."""
    with pytest.raises(UncorkError, match="Give a profiler trace"):
        renderers()[form](starved_report(), Options())


def test_a_snapshot_says_nothing_of_what_a_profiler_was_told(report):
    """Where no profiler ran, its flags are not listed as not measured: memory above all, which a snapshot holds."""
    titles = [{one["title"]["id"] for one in about(of)} for of in (report, analyze_recordings(sketch(HELD)))]
    assert ["page.about.flags" in one for one in titles] == [True, False]
