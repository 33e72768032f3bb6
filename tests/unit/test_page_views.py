"""What the page draws, worked out by hand from sketches: lanes, links, details, sentences, flame graphs, steps."""

import random
import string
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.unit.reports import starved_report
from uncork.events import IntArray
from uncork.findings import Location, NotAssessed
from uncork.measure import MissingEvidence, Rank
from uncork.measure.views.flame_view import FlameView, parents, with_children
from uncork.measure.views.lanes import _sublanes
from uncork.measure.views.names import Names, category, printable
from uncork.measure.views.packed import unpack
from uncork.measure.views.sentences import _stretches
from uncork.measure.views.steps_view import StepsView, phases
from uncork.measure.views.timeline_view import TimelineView
from uncork.recording import Recording
from uncork.render import Options
from uncork.render.about_run import about
from uncork.render.html import render
from uncork.render.page_data import as_script
from uncork.render.row_marks import reading_marks
from uncork.sections import ranks_shown
from uncork.testing import sketch

MS = 1_000_000
JOB = """
device NVIDIA A100-SXM4-80GB
with shapes
steps 2 x 10ms
  main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main python 6ms..9ms train.py(12): step
  main 6.1ms..6.5ms aten::conv2d {"Input Dims": [[8, 3, 32, 32]]} -> stream 7 6.6ms..8.6ms cudnn_conv_kernel
  main 7ms..7.4ms aten::mm -> stream 7 8.6ms..9.6ms ampere_sgemm_32x32
"""


def _rank(text: str) -> Rank:
    return Rank(sketch(text)[0])


def _view(text: str) -> tuple[dict[str, Any], dict[str, IntArray]]:
    """Return the unpacked timeline of a sketch, starts undone from gaps."""
    meta, columns = unpack(TimelineView.of(_rank(text)).block)
    starts: list[int] = []
    place = 0
    for track in meta["tracks"]:  # type: ignore[attr-defined]
        for count in track["rows"]:
            end = 0
            for _ in range(count):
                starts.append(end + int(columns["gap"][place]))
                end = starts[-1] + int(columns["dur"][place])
                place += 1
    return meta, {**columns, "start": np.array(starts, np.int64)}  # type: ignore[dict-item, return-value]


def _track(meta: dict[str, Any], role: str) -> tuple[int, int]:
    """Return the first and the last event (exclusive) of the first track of a role."""
    first = 0
    for track in meta["tracks"]:
        last = first + sum(track["rows"])
        if track["role"] == role:
            return first, last
        first = last
    raise AssertionError(role)


def test_a_stream_holds_its_kernels_where_they_ran() -> None:
    """Two kernels a step at 6.6–8.6 and 8.6–9.6 ms, twice, named and coloured by what they do."""
    meta, columns = _view(JOB)
    first, last = _track(meta, "device")
    assert columns["start"][first:last].tolist() == [6_600_000, 8_600_000, 16_600_000, 18_600_000]
    assert columns["dur"][first:last].tolist() == [2 * MS, MS, 2 * MS, MS]
    names = [meta["names"][number] for number in columns["name"][first:last].tolist()]
    assert names == ["cudnn_conv_kernel", "ampere_sgemm_32x32"] * 2
    kinds = [meta["categories"][columns["category"][number]] for number in columns["name"][first:last].tolist()]
    assert kinds == ["conv", "gemm", "conv", "gemm"]


def test_kernels_are_linked_to_their_launches_and_know_their_line_and_shapes() -> None:
    """The first kernel comes from the runtime call inside aten::conv2d, from train.py:12, with its shapes."""
    meta, columns = _view(JOB)
    first, _ = _track(meta, "device")
    pairs = dict(zip(columns["link_to"].tolist(), columns["link_from"].tolist(), strict=True))
    assert len(pairs) == 4
    launch = pairs[first]
    assert meta["names"][columns["name"][launch]] == "cudaLaunchKernel"
    assert 6_100_000 <= columns["start"][launch] < 6_500_000
    detail = columns["detail"][first]
    assert meta["texts"][columns["detail_place"][detail]] == "train.py:12 step"
    assert meta["texts"][columns["detail_shapes"][detail]] == "[[8, 3, 32, 32]]"


def test_the_causes_fill_the_steps_without_a_gap() -> None:
    """The row of causes covers both steps exactly once: their durations sum to 20 ms."""
    meta, columns = _view(JOB)
    first, last = _track(meta, "cause")
    assert int(columns["dur"][first:last].sum()) == 20 * MS
    start, end = columns["start"][first:last], columns["start"][first:last] + columns["dur"][first:last]
    assert (start[1:] == end[:-1]).all()
    assert "cause.data_loading" in meta["names"]


def test_a_long_row_of_causes_keeps_its_longest_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut to three stretches, the row holds the three longest of all, still in order of time."""
    meta, columns = _view(JOB)
    first, last = _track(meta, "cause")
    longest = sorted(columns["dur"][first:last].tolist())[-3:]
    monkeypatch.setattr("uncork.measure.views.lanes.MOST_CAUSES", 3)
    meta, columns = _view(JOB)
    first, last = _track(meta, "cause")
    assert sorted(columns["dur"][first:last].tolist()) == longest
    assert (np.diff(columns["start"][first:last]) > 0).all()


def test_the_longest_operations_are_pointed_out() -> None:
    """One example of each of the two kernels, the longer first."""
    meta, columns = _view(JOB)
    assert [meta["names"][columns["name"][event]] for event in meta["longest"]] == [
        "cudnn_conv_kernel",
        "ampere_sgemm_32x32",
    ]


def test_a_sentence_says_that_gaps_lie_under_the_loader() -> None:
    """6 of 10 ms under the loader: said with its share, and shown where the longest is."""
    meta, _ = _view(JOB)
    (loader,) = [one for one in meta["patterns"] if one["message"]["id"] == "pattern.loader"]
    assert loader["message"]["params"] == {"share": 0.6, "count": 2, "longest_ns": 6 * MS}
    assert (loader["from_ns"], loader["to_ns"]) in {(-3 * MS, 9 * MS), (7 * MS, 19 * MS)}


def test_a_recording_too_large_shows_three_steps_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 30 events, five steps of 8 are too many: the shortest, median and longest are kept whole."""
    monkeypatch.setattr("uncork.measure.views.timeline_view.MOST_EVENTS", 30)
    text = JOB.replace("steps 2 x 10ms", "steps 5 x 10ms")
    rank = _rank(text)
    whole = len(rank.timeline.host) + len(rank.timeline.device)
    assert whole == 40
    view = TimelineView.of(rank)
    meta, columns = unpack(view.block)
    (note,) = meta["left_out"]  # type: ignore[misc]
    assert note["id"] == "page.timeline.three_steps"  # type: ignore[index]
    assert note["params"]["count"] == whole  # type: ignore[index]
    assert view.left_out == whole * 2 // 5
    assert len(columns["dur"]) == view.events


def test_where_even_three_steps_are_too_many_the_longest_events_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 5 events, those of the longest durations are kept, and from which length on is said."""
    monkeypatch.setattr("uncork.measure.views.timeline_view.MOST_EVENTS", 5)
    meta, _ = unpack(TimelineView.of(_rank(JOB)).block)
    (note,) = meta["left_out"]  # type: ignore[misc]
    assert note["id"] == "page.timeline.longest_only"  # type: ignore[index]
    assert 2 * MS <= note["params"]["least_ns"] <= 6 * MS  # type: ignore[index]


def test_a_block_never_outgrows_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 3,000 bytes, 2,000 names of 300 letters drawn at random take fewer events, and that is said."""
    monkeypatch.setattr("uncork.measure.views.timeline_view.MOST_BLOCK_BYTES", 3_000)
    monkeypatch.setattr("uncork.measure.views.timeline_view._FEWEST_EVENTS", 10)
    monkeypatch.setattr("uncork.measure.views.timeline_view.MOST_EVENTS", 2_000)
    luck = random.Random(1)
    lines = [
        f"  main {at * 5}us..{at * 5 + 1 + at % 3}us {''.join(luck.choices(string.ascii_letters, k=300))}"
        for at in range(2_000)
    ]
    view = TimelineView.of(_rank("\n".join(["steps 1 x 10ms", *lines])))
    meta, columns = unpack(view.block)
    assert len(view.block) <= 3_000
    assert 2_000 - 100 < view.left_out < 2_000
    assert {note["id"] for note in meta["left_out"]} == {"page.timeline.longest_only"}  # type: ignore[attr-defined]
    assert len(meta["names"]) <= len(columns["name"])  # type: ignore[arg-type]


def test_names_too_long_in_all_are_cut_but_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for 60 characters and three names: 20 each; a key of the catalogue stays whole."""
    monkeypatch.setattr("uncork.measure.views.names.MOST_IN_ALL", 60)
    names = Names()
    for text in ("a" * 50, "unused" * 9, "cause.data_loading.and.more", "short"):
        names.number(text, "op")
    (numbers,) = names.keep(np.array([3, 0, 2, 0]))
    assert names.texts == ["a" * 19 + "…", "cause.data_loading.and.more", "short"]
    assert numbers.tolist() == [2, 0, 1, 0]


def test_slivers_do_not_part_a_stretch() -> None:
    """Of lengths 40, 20 and 5: a break of 1 is a sliver (under 40 / 20), one of 10 parts."""
    spans = np.array([[0, 40], [41, 61], [71, 76]])
    assert _stretches(spans, np.array([0])).tolist() == [[0, 61], [71, 76]]


def test_each_steps_wait_is_a_stretch_of_its_own() -> None:
    """Three steps of 53 ms of waiting and 2 ms of work: three stretches of 53 ms, not one of 163 ms."""
    spans = np.array([[0, 53], [55, 108], [110, 163]])
    assert _stretches(spans, np.array([0, 55, 110])).tolist() == spans.tolist()
    assert _stretches(spans, np.array([0, 54, 109])).tolist() == spans.tolist()
    assert _stretches(spans, np.array([0])).tolist() == [[0, 163]]


def test_overlapping_work_on_a_stream_goes_to_several_rows() -> None:
    """First free row: [0, 10) and [5, 15) overlap, [10, 12) fits behind the first, [11, 20) needs a third row."""
    start, end = np.array([0, 5, 10, 11]), np.array([10, 15, 12, 20])
    assert _sublanes(start, end).tolist() == [0, 1, 0, 2]


def test_a_recording_without_events_has_no_timeline() -> None:
    """What is missing is said, not drawn as empty."""
    with pytest.raises(MissingEvidence):
        TimelineView.of(Rank(Recording("functions.pstats", "pstats")))


def test_flame_widths_are_device_times_below_the_stack() -> None:
    """By stack: the user's frame holds 6 ms of device time, conv2d 4, its kernel 4; paths in pre-order."""
    meta, columns = unpack(FlameView.of(_rank(JOB)).block)
    depth, own = columns["t0_depth"], columns["t0_device_ns"]
    names = [meta["names"][number] for number in columns["t0_name"].tolist()]  # type: ignore[index]
    total = with_children(parents(depth), own)  # type: ignore[arg-type]
    found = {name: int(value) for name, value in zip(names, total, strict=True) if value}
    assert found["train.py(12): step"] == 6 * MS
    assert found["aten::conv2d"] == 4 * MS
    assert found["cudnn_conv_kernel"] == 4 * MS
    assert found["ampere_sgemm_32x32"] == 2 * MS
    assert int(own[names.index("cudnn_conv_kernel")]) == 4 * MS


def test_a_leaf_with_more_than_half_is_called_out() -> None:
    """The convolution's kernel alone is 4 of 6 ms of device time: 67 %."""
    meta, _ = unpack(FlameView.of(_rank(JOB)).block)
    (callout,) = [one for one in meta["callouts"] if one["tree"] == "stack"]  # type: ignore[attr-defined]
    assert callout["message"]["id"] == "flame.leaf.device"
    assert callout["message"]["params"] == {"name": "cudnn_conv_kernel", "share": pytest.approx(4 / 6)}


def test_steps_show_causes_and_their_phase() -> None:
    """Two steps of 10 ms, 6 of them waiting for data; two are too few to call one an outlier."""
    view = StepsView.of(_rank(JOB))
    assert view.step_ns.tolist() == [10 * MS, 10 * MS]
    assert view.causes[0] == "data_loading"
    assert view.ns[0].tolist() == [6 * MS, 6 * MS]
    assert view.ns.sum(axis=0).tolist() == [10 * MS, 10 * MS]
    assert view.phases == ("steady", "steady")


@pytest.mark.parametrize(
    ("step_ms", "expected"),
    [
        ([10, 10, 10, 10], "steady steady steady steady"),
        ([90, 30, 10, 10, 10, 10, 10, 10], "warm_up warm_up steady steady steady steady steady steady"),
        ([10, 11, 10, 40, 10, 11, 10, 10], "steady steady steady outlier steady steady steady steady"),
        ([10, 40], "steady steady"),
    ],
)
def test_phases_by_hand(step_ms: list[int], expected: str) -> None:
    """Long steps at the beginning are warm-up, long ones later are outliers."""
    assert " ".join(phases(np.array(step_ms) * MS)) == expected


def test_the_ranks_shown_are_those_with_most_median_and_least_time_of_their_own() -> None:
    """Own time of ranks 0 to 4: 5, 9, 1, 7, 3; waiting in collectives, much on rank 2, is not counted."""
    steps = {
        rank: StepsView(
            ("0",), ("steady",), ("gemm", "comm"), np.array([[own], [99 if rank == 2 else 1]]), np.array([9])
        )
        for rank, own in enumerate((5, 9, 1, 7, 3))
    }
    assert ranks_shown(steps) == [1, 0, 2]
    assert ranks_shown({3: steps[3]}) == [3]
    assert ranks_shown({}) == []


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("aten::mm", 1, "op"),
        ("autograd::engine::evaluate_function: MmBackward0", 1, "backward"),
        ("nn.Module: Linear_0", 3, "module"),
        ("train.py(3): f", 3, "python"),
        ("cudaDeviceSynchronize", 4, "sync"),
        ("cudaLaunchKernel", 4, "runtime"),
        ("cudaMalloc", 4, "allocator"),
        ("ncclDevKernel_AllReduce_Sum", 5, "comm"),
        ("void at::native::vectorized_elementwise_kernel", 5, "bandwidth"),
        ("Memcpy HtoD", 6, "copy"),
    ],
)
def test_categories(name: str, kind: int, expected: str) -> None:
    """A colour stands for what the event is."""
    assert category(name, kind) == expected


def test_names_with_hidden_characters_are_spelt_out() -> None:
    """Marks of direction and controls become visible; long names are cut; alike names share a number per category."""
    assert printable("a\u202eb\nc\x00") == "a\\u202eb\\u000ac\\u0000"
    assert len(printable("x" * 5000)) == 400
    names = Names()
    assert [names.number("a", "op"), names.number("b", "op"), names.number("a", "op"), names.number("a", "copy")] == [
        0, 1, 0, 2,
    ]  # fmt: skip


def test_data_inside_a_script_element_cannot_end_it() -> None:
    """Every less-than sign is escaped, so neither a closing tag nor a comment can begin."""
    assert as_script({"a": "</script><!--\u2028"}) == '{"a":"\\u003c/script>\\u003c!--\\u2028"}'


def test_r4_3_reading_rules_fire_on_their_rows() -> None:
    """Three products hold 80 of 100 ms; copies 12; one operator runs 20,000 times at 1 µs each."""
    rows = [
        {"name": "aten::mm", "calls": 10, "device_self_ns": 50, "cpu_self_ns": 1},
        {"name": "aten::addmm", "calls": 10, "device_self_ns": 20, "cpu_self_ns": 1},
        {"name": "aten::bmm", "calls": 10, "device_self_ns": 10, "cpu_self_ns": 1},
        {"name": "aten::copy_", "calls": 10, "device_self_ns": 12, "cpu_self_ns": 1},
        {"name": "aten::add", "calls": 20_000, "device_self_ns": 8, "cpu_self_ns": 20_000_000},
    ]
    marks = reading_marks("operators", rows)
    assert marks == {
        0: "reading.top_compute",
        1: "reading.top_compute",
        2: "reading.top_compute",
        4: "reading.many_calls",
    }
    assert reading_marks("kernels", rows) == {}


def test_a_mark_and_the_evidence_mean_the_same_operators() -> None:
    """A softmax of 60 of 100 ms computes by its name, but its kernel moves memory: 40 % in products fire nothing."""
    rows = [
        {"name": "aten::_softmax", "calls": 1, "device_self_ns": 60, "kernel_class": "softmax", "op_class": "compute"},
        {"name": "aten::bmm", "calls": 1, "device_self_ns": 40, "kernel_class": "gemm", "op_class": "compute"},
    ]
    assert reading_marks("operators", rows) == {}


def test_the_loader_on_top_of_the_cpu_is_marked() -> None:
    """60 of 100 ns of CPU self time in the loader's next."""
    rows = [
        {"name": "aten::mm", "calls": 1, "cpu_self_ns": 40},
        {"name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "calls": 1, "cpu_self_ns": 60},
    ]
    assert reading_marks("operators", rows)[1] == "reading.loader"


def test_no_text_of_a_recording_becomes_markup() -> None:
    """Whatever a report's texts hold, the page has the scripts it should have, no others, and can be written."""
    evil = "</title></script><script>alert(1)</script><!--\u202e\ud800"
    report = starved_report()
    report = replace(
        report,
        findings=tuple(
            replace(one, location=Location(file=evil, line=1, module=evil, op=evil), params={"workers": evil})
            for one in report.findings
        ),
        run={
            **report.run,
            "sources": [evil],
            "command": [evil],
            "devices": [{"name": evil}],
            "versions": {"torch": evil},
        },
        tables={"operators": [{"name": evil, "file": evil, "line": 3, "cpu_self_ns": 1, "calls": 1}]},
        memory={"peak_bytes": 1, evil: evil, "largest": [{"category": evil, "bytes": 1, "share": 1.0, "count": 1}]},
    )
    html = render(report, Options())
    html.encode("utf-8")
    assert html.count("<script") == 3
    assert html.count("alert(1)") == html.count("alert(1)&lt;") + html.count("alert(1)\\u003c")
    assert "\u202e" not in html


def test_about_a_run_speaks_in_uncork_runs_words_and_names_files_without_their_folders() -> None:
    """Who used ``uncork run`` is not told to use it; whose home a data set lies in is in no page that is passed on."""
    report = starved_report()
    run = {**report.run, "format": "run", "settings": {"dataset_file": "/home/ada/train.py", "compiled": None}}
    lack = NotAssessed("dominant-operator", ("stacks",))
    sections = about(replace(report, run=run, not_assessed=(lack,)))
    facts = [(fact["label"], fact["value"]) for section in sections for fact in section["facts"]]
    assert ({"id": "missing.stacks"}, {"id": "record.stacks.run"}) in facts
    assert ({"id": "page.field.other", "params": {"name": "dataset_file"}}, "train.py") in facts
    assert ({"id": "page.field.other", "params": {"name": "compiled"}}, {"id": "page.not_set"}) in facts
