"""Each view of the report in a real browser: what it shows, held against the report's own figures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.reports import starved_report
from tests.web.conftest import AXE, HOSTILE
from uncork.compare import compare
from uncork.errors import UncorkError
from uncork.findings import Bottleneck, Location
from uncork.locale import say
from uncork.measure.views.steps_view import StepsView, phases
from uncork.pipeline import analyze_recordings
from uncork.render import Options, renderers
from uncork.render.evidence import view_of
from uncork.render.html import render, render_compared
from uncork.report import Report
from uncork.testing import sketch
from uncork.units import format_bytes

pytestmark = pytest.mark.web
MS = 1_000_000
TWO_RANKS = """
ranks 2
device NVIDIA A100-SXM4-80GB
steps 2 x 10ms
  rank 0: main 1ms..1.2ms aten::mm -> stream 7 1.3ms..3.3ms short_gemm
  rank 1: main 1ms..1.2ms aten::mm -> stream 7 1.3ms..8.3ms long_gemm
  rank 0: main op 1.3ms..1.5ms c10d::allreduce_ -> stream 20 3.4ms..9.4ms ncclDevKernel_AllReduce
  rank 1: main op 1.3ms..1.5ms c10d::allreduce_ -> stream 20 8.4ms..9.4ms ncclDevKernel_AllReduce
"""
HOLDERS = """
snapshot reserved 8GiB
snapshot alloc weight 1GiB model.py:8:__init__
snapshot alloc kept 3GiB model.py:31:forward
snapshot free kept torch::autograd::Engine::thread_main
snapshot step AdamW
snapshot alloc moment 2GiB torch/optim/adamw.py:9:step
"""
SHOWN = "<img src=x onerror=window.broken=1></script>\\u202eevil\U0001f600"


def saved(report: Report, folder: Path) -> Path:
    """Return the file that holds a report's page."""
    path = folder / "report.html"
    path.write_text(render(report, Options()), "utf-8")
    return path


def test_tables_hold_what_the_report_holds(new_page: Any, html: Path, report: Report) -> None:
    """Every operator of the JSON is a row; sorting by calls turns the order; numbers are spelt as everywhere."""
    page = new_page().open(html, "view=tables&table=operators")
    rows = report.tables["operators"]
    assert f"{len(rows)} of {len(rows)}" in page.tab.locator(".tables").inner_text()
    names = page.tab.locator(".tables tbody tr td:first-child").all_inner_texts()
    # A mark of a reading rule stands before the name.
    assert all(any(str(row["name"])[:20] in name for name in names) for row in rows if row["name"] != HOSTILE)
    header = page.tab.locator(".tables th").first
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    sorted_names = page.tab.locator(".tables tbody tr td:first-child").all_inner_texts()
    assert sorted_names != names or len(names) == 1


def test_steps_have_a_bar_each(new_page: Any, html: Path) -> None:
    """Four steps of 10 ms: four groups of bars, and the table under them says 10 ms."""
    page = new_page().open(html, "view=steps")
    assert page.tab.locator("svg g.step").count() == 4
    assert page.tab.locator(".steps td", has_text="10.0 ms").count() >= 3


def test_memory_shows_its_curve_and_peak(new_page: Any, html: Path) -> None:
    """2 MiB allocated on the device from 6.2 ms on: the peak is said in words, for those who cannot see the curve."""
    page = new_page().open(html, "view=memory")
    label = page.tab.locator("canvas.chart").first.get_attribute("aria-label")
    assert "2.00 MiB" in label
    assert "6.20 ms" in label


def test_the_flame_graph_widths_are_device_times(new_page: Any, html: Path) -> None:
    """Device time by stack: 2.0 + 0.5 + 0.1 + 0.5 ms a step below the user's frame, in four steps."""
    page = new_page().open(html, "view=flame")
    page.tab.focus(".flame-lanes")
    page.tab.keyboard.press("ArrowRight")
    text = page.tab.locator(".flame .details").inner_text()
    assert "train.py:12 step" in text
    assert "12.4 ms · 100 %" in text


def test_a_box_of_the_flame_graph_leads_to_its_events(new_page: Any, html: Path) -> None:
    """From the kernel's box, found by name, to the line that launched it and to its four events in the timeline."""
    from playwright.sync_api import expect

    page = new_page().open(html, "view=flame")
    page.tab.locator(".flame .link").first.click()  # the call-out: the leaf with more than half of the device time
    details = page.tab.locator(".flame .details")
    assert "cudnn_conv_kernel" in details.inner_text()
    details.get_by_role("button", name=say("en", "page.in_timeline")).click()
    expect(page.tab.locator(".timeline input")).to_have_value("cudnn_conv_kernel", timeout=20_000)
    assert say("en", "page.search.found", {"count": 4}) in page.tab.locator(".timeline .bar").inner_text()
    page.tab.keyboard.press("3")
    page.tab.focus(".flame-lanes")
    page.tab.keyboard.press("ArrowRight")
    assert "train.py:12 step" in page.tab.locator(".flame .details dd").first.inner_text()


def test_rows_are_grouped_and_copied(new_page: Any, html: Path, report: Report) -> None:
    """By line: what lines 12 take together, in calls and self time; copied as CSV with plain figures, as Markdown."""
    page = new_page(permissions=["clipboard-read", "clipboard-write"]).open(html, "view=tables&table=operators")
    rows = [row for row in report.tables["operators"] if row.get("file") == "train.py"]
    page.tab.locator(".tables .choice select").select_option("place")
    page.tab.get_by_role("button", name="CSV").click()
    page.tab.get_by_role("button", name=say("en", "page.copied")).wait_for()
    head, *lines = page.tab.evaluate("navigator.clipboard.readText()").splitlines()
    columns = head.split(",")
    (line,) = [line.split(",") for line in lines if "train.py:12" in line]
    for column in ("calls_per_step", "device_self_ns", "cpu_self_ns"):
        assert float(line[columns.index(column)]) == sum(row[column] for row in rows), column
    page.tab.get_by_role("button", name="Markdown").click()
    page.tab.wait_for_timeout(100)
    assert page.tab.evaluate("navigator.clipboard.readText()").startswith(f"| {say('en', 'column.name')} | ")


def test_a_snapshot_shows_who_held_memory(new_page: Any, tmp_path: Path, axe: str) -> None:
    """Owners at the peak with their bytes as the JSON has them, the peak's moment, the line of the largest."""
    report = analyze_recordings(sketch(HOLDERS), views=True)
    page = new_page().open(saved(report, tmp_path), "view=memory")
    text = page.tab.locator("div.memory").inner_text()
    assert report.memory is not None
    assert [one["category"] for one in report.memory["categories"]]
    for one in report.memory["categories"]:
        assert format_bytes(one["bytes"]) in text, one["category"]
    assert "4.00 GiB at" in text
    assert "model.py:31 forward" in text
    assert page.tab.locator("svg.area line.peak").count() == 1
    page.tab.evaluate(axe)
    assert page.tab.evaluate(AXE) == []
    assert page.errors == []


@pytest.mark.parametrize("way", ["line", "button"])
def test_the_peak_leads_to_who_held_memory(new_page: Any, tmp_path: Path, way: str) -> None:
    """A click three pixels beside the peak's line, or the button: who held memory is at the top of the window."""
    page = new_page(viewport={"width": 1440, "height": 600}).open(
        saved(analyze_recordings(sketch(HOLDERS), views=True), tmp_path), "view=memory"
    )
    page.tab.locator("svg.area").scroll_into_view_if_needed()
    top = "document.getElementById('at-peak').getBoundingClientRect().top"
    assert page.tab.evaluate(top) > 280
    if way == "line":
        line = page.tab.evaluate("document.querySelector('line.peak').getBoundingClientRect().toJSON()")
        page.tab.mouse.click(line["x"] - 3, line["y"] + line["height"] / 2)
    else:
        page.tab.get_by_role("button", name=say("en", "page.memory.at_peak")).click()
    assert page.tab.evaluate(top) < 60


def test_a_failed_request_is_told_in_sentences(new_page: Any, tmp_path: Path, axe: str) -> None:
    """4 GiB asked for with 100 MiB and one idle piece of 2 GiB left: 3.9 GiB short; each change has its row."""
    lines = (
        *("reserved 8GiB", "old 3GiB", "alloc a 3GiB model.py:12:forward < train.py:9:train"),
        "oom 4GiB free 100MiB model.py:14:forward < train.py:9:train",
    )
    report = analyze_recordings(sketch("\n".join(f"snapshot {line}" for line in lines)), views=True)
    assert report.memory is not None
    page = new_page().open(saved(report, tmp_path), "view=memory")
    told = [line for line in page.tab.locator("div.memory .quality").inner_text().splitlines() if line]
    phase = say("en", "memory.phase.forward")
    assert told == [
        f"A request for 4.00 GiB failed in the {phase}",
        "The line that asked: model.py:14 forward",
        "100 MiB were free on the device.",
        "2.00 GiB lay idle in the reserve (pieces: 1, the largest 2.00 GiB).",
        "At most 2.00 GiB would have fitted into the reserve, at most 100 MiB on the device.",
        "The device was short of 3.90 GiB.",
        "No change below is sure to have been enough alone.",
    ]
    text = page.tab.locator("div.memory").inner_text()
    assert "0 free (0 B: empty_cache gives them back) · 1 used in part (2.00 GiB free between blocks) · 0 full" in text
    rows = page.tab.locator(".block", has_text=say("en", "page.memory.what_if")).locator("tbody tr").all_inner_texts()
    (half,) = [row.split("\t") for row in rows if row.startswith(say("en", "what_if.half_batch"))]
    assert half[3] == say("en", "page.no")
    assert len(rows) == len(report.memory["what_if"])
    page.tab.evaluate(axe)
    assert page.tab.evaluate(AXE) == []
    assert page.errors == []


def test_steps_out_of_line_are_told_apart(new_page: Any, tmp_path: Path) -> None:
    """A first step of three times the median is pale, one of four times later is outlined; the mean leaves both out."""
    whole = np.array([30, *[10] * 7, 40]) * MS
    steps = StepsView(tuple("123456789"), phases(whole), ("gemm",), whole[None], whole)
    page = new_page().open(
        saved(replace(starved_report(), views={"Shown": {0: {"StepsView": steps}}}), tmp_path), "view=steps"
    )
    assert page.tab.locator("g.step").evaluate_all("all => all.map(one => one.classList[1])") == [
        *("warm_up", *["steady"] * 7, "outlier"),
    ]
    assert page.tab.locator("g.step rect.outlier").count() == 1
    assert page.tab.locator(".means h3").inner_text() == f"{say('en', 'page.steps.mean', {'steps': 7})} 10.0 ms"


def test_about_says_what_was_recorded_and_what_lacks(new_page: Any, html: Path, report: Report) -> None:
    """Flags, what the recording lacks with how to record it, and the meaning of the words."""
    page = new_page().open(html, "view=about")
    text = page.tab.locator(".about").inner_text()
    lacks = {what for lack in report.not_assessed if report.applies(lack) for what in lack.missing}
    assert lacks
    for key in (*(f"missing.{what}" for what in lacks), "page.flag.shapes", "page.glossary.exposed.means"):
        assert say("en", key) in text, key


def test_a_finding_leads_to_the_view_that_shows_it(new_page: Any, report: Report, html: Path, tmp_path: Path) -> None:
    """To the timeline where it has stretches there; a memory finding to the memory; nowhere where nothing shows it."""
    first = report.findings[0]
    assert view_of(first, report) == "timeline"
    memory = replace(first, rule="high-peak", bottleneck=Bottleneck.MEMORY, location=Location())
    assert view_of(memory, replace(report, ledger=())) == "memory"
    assert view_of(replace(memory, bottleneck=Bottleneck.NONE), replace(report, ledger=())) == ""
    page = new_page().open(saved(replace(report, ledger=(), findings=(memory,)), tmp_path))
    page.tab.locator("[data-act=evidence]:visible").click()
    assert page.tab.locator("[role=tab][aria-selected=true]").inner_text() == say("en", "page.tab.memory")


def test_the_memory_timeline_opens_at_the_memory(new_page: Any, report: Report, tmp_path: Path) -> None:
    """What --export memory-timeline writes is the page, begun at its memory."""
    path = tmp_path / "memory.html"
    path.write_text(renderers()["memory_timeline"](report, Options()), "utf-8")
    page = new_page().open(path)
    assert page.tab.locator("[role=tab][aria-selected=true]").inner_text() == say("en", "page.tab.memory")
    assert page.tab.locator("canvas.chart").first.is_visible()
    with pytest.raises(UncorkError):
        renderers()["memory_timeline"](replace(report, memory=None), Options())


def test_one_of_several_ranks_is_chosen(new_page: Any, tmp_path: Path) -> None:
    """Two ranks: the one that computes longer is shown first and says why; the choice shows the other and stays."""
    page = new_page().open(saved(analyze_recordings(sketch(TWO_RANKS), views=True), tmp_path))
    names = "t.trace.meta.names.join()"
    assert page.tab.locator(".rank select").input_value() == "1"
    assert say("en", "page.rank.most") in page.tab.locator(".rank option:checked").inner_text()
    assert "long_gemm" in page.timeline(names)
    page.tab.locator(".rank select").select_option("0")
    page.tab.wait_for_timeout(500)
    assert "short_gemm" in page.timeline(names)
    assert "rank=0" in page.tab.evaluate("location.hash")
    page.tab.keyboard.press("6")
    assert page.tab.locator(".rankbars li", has_text="rank 1").count() == 1
    assert page.errors == []


def test_ranks_the_page_has_no_room_for_are_named(
    new_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for one rank of three: the one with most time of its own is shown, the others named."""
    monkeypatch.setattr("uncork.render.page_data.MOST_BLOCK_BYTES", 1)
    text = """
    ranks 3
    device NVIDIA A100-SXM4-80GB
    steps 2 x 10ms
      rank 0: main 1ms..1.2ms aten::mm -> stream 7 1.3ms..3.3ms gemm
      rank 1: main 1ms..1.2ms aten::mm -> stream 7 1.3ms..8.3ms gemm
      rank 2: main 1ms..1.2ms aten::mm -> stream 7 1.3ms..5.3ms gemm
      main op 1.3ms..1.5ms c10d::allreduce_ -> stream 20 8.4ms..9.4ms ncclDevKernel_AllReduce
    """
    report = analyze_recordings(sketch(text), views=True)
    first, *others = report.views["Shown"]
    page = new_page().open(saved(report, tmp_path))
    assert page.tab.locator(".rank select option").count() == 1
    assert page.tab.locator(".rank select").input_value() == str(first)
    told = say("en", "page.ranks.left_out", {"ranks": ", ".join(map(str, others))})
    assert told in page.tab.locator("p.rank").inner_text()


def test_a_finding_of_a_rank_shows_that_rank(new_page: Any, tmp_path: Path) -> None:
    """A finding about the rank that is not shown yet: its button switches to it and marks its stretch."""
    report = analyze_recordings(sketch(TWO_RANKS), views=True)
    first, other = report.views["Shown"]
    finding = replace(
        report.findings[0], rule="made-up", bottleneck=Bottleneck.COMMUNICATION, location=Location(rank=other)
    )
    page = new_page().open(saved(replace(report, findings=(finding,)), tmp_path))
    assert page.tab.locator(".rank select").input_value() == str(first)
    page.tab.locator("[data-act=evidence]:visible").click()
    page.tab.wait_for_selector("canvas.lanes")
    page.tab.wait_for_timeout(300)
    assert page.tab.locator(".rank select").input_value() == str(other)
    assert page.timeline("t.measure !== null")
    assert page.errors == []


def test_many_ranks_are_squares(new_page: Any, tmp_path: Path, axe: str) -> None:
    """Seventy ranks: a square each, darkest where its own work takes longest; bars of the three shown."""
    steps = {
        number: StepsView(
            ("0",), ("steady",), ("gemm", "comm_wait"), np.array([[own], [90 * MS - own]]), np.array([90 * MS])
        )
        for number, own in enumerate([10 * MS] * 69 + [80 * MS])
    }
    report = replace(starved_report(), views={"Ranks": steps, "Shown": {69: {}, 3: {}, 0: {}}})
    page = new_page().open(saved(report, tmp_path), "view=ranks")
    assert page.tab.locator(".heat li").count() == 70
    shades = page.tab.locator(".heat li").evaluate_all("all => all.map(one => one.style.getPropertyValue('--heat'))")
    assert shades == ["0%"] * 69 + ["100%"]
    assert page.tab.locator(".heat li").last.get_attribute("aria-label") == "rank 69: 80.0 ms"
    assert page.tab.locator(".rankbars li").count() == 3
    page.tab.evaluate(axe)
    assert page.tab.evaluate(AXE) == []
    page.tab.locator(".heat-what select").select_option("comm_wait")
    assert page.tab.locator(".heat li").last.get_attribute("aria-label") == "rank 69: 10.0 ms"
    assert page.errors == []


def test_a_comparison_is_the_first_view(new_page: Any, report: Report, tmp_path: Path, axe: str) -> None:
    """Compared with a report whose step took twice as long: the sentence on top, and the view that says what moved."""
    before = replace(
        report,
        run={**report.run, "step_ns": 20 * MS, "median_step_ns": 20 * MS},
        ledger=tuple(replace(entry, ns_per_step=2 * entry.ns_per_step) for entry in report.ledger),
        findings=(),
    )
    comparison = compare(before, report)
    path = tmp_path / "compared.html"
    path.write_text(render_compared(report, comparison, Options()), "utf-8")
    page = new_page().open(path)
    sentence = say("en", comparison.sentence.id, comparison.sentence.params)
    assert page.tab.locator(".compared:visible h2").inner_text() == sentence
    assert page.tab.locator("[role=tab][aria-selected=true]").inner_text() == say("en", "page.tab.compare")
    page.tab.evaluate(axe)
    assert page.tab.evaluate(AXE) == []
    for width in (900, 390):
        page.tab.set_viewport_size({"width": width, "height": 900})
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= width
    text = page.tab.locator(".compare").text_content()
    assert "▾ −6.00 ms" in text
    assert say("en", "compare.new") in text
    assert page.errors == []
