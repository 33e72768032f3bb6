"""Where a terminal's lines end: in Chinese, at numbers, in narrow windows."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.unit.reports import starved_report
from tests.web.test_views import HOLDERS
from uncork.compare import compare
from uncork.findings import Gain
from uncork.locale import LANGUAGES, say
from uncork.pipeline import analyze_recordings
from uncork.render import Options, renderers
from uncork.render.comparison import render_comparison
from uncork.render.lines import Text
from uncork.testing import sketch

WAITING = """
    setting num_workers 0
    steps 4 x 10ms
      main 0ms..7ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 7ms..9.9ms aten::mm
"""


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of a text."""
    return [line.plain.rstrip() for line in Text(text).wrap(Console(width=width), width)]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        # rich alone would put "!" on a line of its own, and cut PyTorch in two.
        ("! 记录包含预热步", 10, ["! 记录包含", "预热步"]),
        ("缺少PyTorch的版本", 10, ["缺少", "PyTorch的", "版本"]),
        ("等待数据加载，很久", 12, ["等待数据加", "载，很久"]),
        ("（等待）加载", 6, ["（等", "待）加", "载"]),
        ("每步有 42 % 的时间", 9, ["每步有", "42 % 的时", "间"]),
        ("waits for 42 % of it", 12, ["waits for", "42 % of it"]),
        ("takes 6.66 s, and 3 MiB", 10, ["takes", "6.66 s,", "and 3 MiB"]),
        ("set torch.profiler.record(a_b=True)。", 24, ["set torch.profiler.", "record(a_b=True)。"]),
        ("open /data/of/the/run.json", 24, ["open", "/data/of/the/run.json"]),
        ("short", 10, ["short"]),
    ],
)
def test_lines_end_where_a_reader_would_end_them(text: str, width: int, lines: list[str]) -> None:
    """After any Chinese character but before no closing sign; never between a number and its unit."""
    assert wrapped(text, width) == lines


def test_styles_stay_where_they_were() -> None:
    """A green word in the middle is green on its line; nothing of the marks is left."""
    text = Text("开头很长的中文", style="dim")
    text.append("绿色 5 %", style="green")
    first, second = text.wrap(Console(width=14), 14)
    assert (first.plain, second.plain) == ("开头很长的中文", "绿色 5 %")
    assert next(span.start for span in second.spans if span.style == "green") == 0
    assert all(span.style != "green" for span in first.spans if span.end > span.start)


@pytest.mark.parametrize("label", ["通信", "a b"])
def test_a_label_at_the_end_stays_on_one_line(label: str) -> None:
    """At no width that has room for it is the label cut; the same words unmarked are, at some."""
    marked = Text("每步有 65 % 在等待  ")
    marked.append(label)
    marked.last = len(label)
    ends = []
    for text in (marked, Text(marked.plain)):
        lines = [text.wrap(Console(width=width), width) for width in range(6, 25)]
        ends.append([one[-1].plain.rstrip().endswith(label) for one in lines])
    assert [all(one) for one in ends] == [True, False]


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("width", range(40, 131, 6))
def test_no_line_of_the_report_begins_with_a_lone_sign(lang: str, width: int) -> None:
    """At any width, with the evidence too."""
    report = analyze_recordings(sketch(WAITING))
    text = renderers()["terminal"](report, Options(lang=lang, width=width, verbose=True))
    assert max(map(cell_len, text.splitlines())) <= width
    assert [line for line in text.splitlines() if re.match(r"\s*[，。；：！？）、」%]", line)] == []
    assert [line for line in text.splitlines() if line.strip() in ("!", "·", "✓", "✗")] == []


@pytest.mark.parametrize(("width", "bars"), [(40, 0), (60, 3), (80, 3), (120, 3)])
def test_names_of_causes_are_whole_before_there_are_bars(width: int, bars: int) -> None:
    """From 80 columns on no name of a cause is cut; in a window of 40 there is no room for bars."""
    named = ("data_loading", "gemm", "dispatch")
    ledger = tuple(replace(starved_report().ledger[0], cause=cause, share=1 / 3) for cause in named)
    text = renderers()["terminal"](replace(starved_report(), ledger=ledger), Options(width=width))
    assert sum("█" in line for line in text.splitlines()) == bars
    assert ("matrix products, convolutions, attention" in text) == (width >= 80)


def test_gains_stand_in_one_column() -> None:
    """One "up to −16 %" is wider than "−30…55 %": the titles begin in one column all the same."""
    finding = starved_report().findings[0]
    two = replace(starved_report(), findings=(finding, replace(finding, gain=Gain(0.0, 0.16))))
    for lang, gains in (("en", ("−30…55 %", "up to −16 %")), ("zh", ("−30…55 %", "至多 −16 %"))):
        lines = renderers()["terminal"](two, Options(lang=lang, width=100)).splitlines()
        rows = [line for line in lines if any(gain in line for gain in gains)]
        assert len(rows) == 2
        starts = {cell_len(head[0]) for row in rows if (head := re.match(r"\s+\d\s+(?:\S+ )*?\S+ %\s+", row))}
        assert len(starts) == 1


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_narrow_comparison_says_what_changed(lang: str) -> None:
    """In 40 columns names and changes stand there whole; in 100, before and after stand beside them."""
    fast = replace(
        starved_report(),
        ledger=(replace(starved_report().ledger[0], ns_per_step=20_000_000), *starved_report().ledger[1:]),
    )
    comparison = compare(starved_report(), fast)
    narrow, wide = (render_comparison(comparison, lang, width=width) for width in (40, 100))
    assert max(map(cell_len, narrow.splitlines())) <= 40
    for text, whole in ((narrow, False), (wide, True)):
        (row,) = (line for line in text.splitlines() if say(lang, "cause.data_loading") in line and "−40.0 ms" in line)
        assert ("60.0 ms" in row and "20.0 ms" in row) == whole


def test_a_narrow_snapshot_cuts_places_not_sizes() -> None:
    """In 40 columns the sizes of the owners stand there whole."""
    text = renderers()["terminal"](analyze_recordings(sketch(HOLDERS)), Options(width=40))
    assert max(map(cell_len, text.splitlines())) <= 40
    assert sum("3.00 GiB" in line for line in text.splitlines()) >= 2


@pytest.mark.parametrize(("lang", "between"), [("en", "in all: 1. Record"), ("zh", "总数：1。请")])
def test_sentences_stand_apart_as_the_language_has_it(lang: str, between: str) -> None:
    """What to do follows the warning: after a blank in English, at once after a Chinese stop."""
    report = analyze_recordings(sketch("steps 1 x 10ms\n  main 0ms..9ms aten::mm"))
    assert between in renderers()["terminal"](report, Options(lang=lang, width=300))
