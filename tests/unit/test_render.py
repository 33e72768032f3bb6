"""The report as text for people."""

import json
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from tests.unit.reports import starved_report, with_step
from uncork.errors import UsageError
from uncork.findings import Bottleneck, Gain, Message, NotAssessed, Quality, Verdict
from uncork.locale import say
from uncork.pipeline import analyze_recordings
from uncork.render import Options, renderers
from uncork.render.tables import COLUMNS, fitting, place, top_rows
from uncork.report import finding_texts, spell
from uncork.testing import sketch
from uncork.units import format_ns

STARVED = """
    steps 4 x 10ms
      main 0ms..7ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 7ms..9.9ms aten::mm
"""


@pytest.mark.parametrize("width", [40, 52, 80, 120])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_terminal_keeps_within_its_width(width, lang):
    """No line is wider than the terminal; Chinese characters count twice."""
    from rich.cells import cell_len

    text = renderers()["terminal"](starved_report(), Options(lang=lang, width=width, verbose=True))
    assert max(cell_len(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("width", range(40, 121, 5))
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_character_of_a_text_is_lost_where_lines_end(width, lang):
    """Whatever the width, sentence, title, advice and its risk stand there whole, but for the spaces between lines."""
    report = analyze_recordings(sketch("setting num_workers 0\n" + STARVED))
    shown = "".join(renderers()["terminal"](report, Options(lang=lang, width=width, verbose=True)).split())
    (finding,) = (one for one in report.findings if one.rule == "starved")
    texts = finding_texts(finding, lang)
    said = [spell(report.verdict.summary, lang), texts["because"]]
    for advice in texts["advice"]:
        said += [advice["text"], advice["risk"]]
    assert len(said) > 4
    for text in said:
        assert "".join(text.split()) in shown


def test_terminal_leads_with_the_verdict_and_shows_the_ledger():
    """Badge and sentence come first; 60 ms of 100 ms are shown with their share."""
    lines = renderers()["terminal"](starved_report(), Options()).strip().splitlines()
    assert lines[0].split() == ["DATA", "LOADING", "test", "sentence:", "waits", "60.0", "ms"]
    assert "confidence 93 %" in lines[1]
    assert any("60.0 ms" in line and "60 %" in line and "█" in line for line in lines)
    assert any("train.py:41 __getitem__" in line for line in lines)


def test_terminal_is_plain_without_colour_and_styled_with_it():
    """No escape sequence without colour."""
    plain = renderers()["terminal"](starved_report(), Options(color=False))
    assert "\x1b" not in plain
    assert "\x1b[" in renderers()["terminal"](starved_report(), Options(color=True))


def test_what_could_not_be_assessed_is_always_said():
    """Silence is never a pass: the count and what was missing are in the short form too."""
    text = renderers()["terminal"](starved_report(), Options())
    assert "1 could not look, for lack of: shapes, stacks" in text.replace("\n", " ")


def test_tables_sort_by_any_key_and_refuse_unknown_ones():
    """Mm leads by self time, add by calls."""
    report = starved_report()
    assert [row["name"] for row in top_rows(report, "operators", "cpu_self", 1, None)] == ["aten::mm"]
    assert [row["name"] for row in top_rows(report, "operators", "calls", 1, None)] == ["aten::add|<b>"]
    with pytest.raises(UsageError, match="no sort key 'size'"):
        top_rows(report, "operators", "size", 1, None)


def test_markdown_shows_hostile_names_as_text():
    """Names with table bars and HTML stay text."""
    text = renderers()["markdown"](starved_report(), Options(top=5))
    assert "aten::add\\|&lt;b>" in text
    assert "<b>" not in text


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_no_name_adds_a_line(form: str):
    """A device, an operator and a file whose names hold line ends would pass for lines of the report's own."""
    name = "A100\n NONE  All is well <b>"
    report = starved_report()
    row = {**report.tables["operators"][0], "name": name, "file": f"/{name}.py", "module": name}
    (finding, *others) = report.findings
    finding = replace(finding, location=replace(finding.location, module=name, file=None))
    lacks = Quality("device-data-missing", "blocking", 1.0, {"launches": 3, "device": name})
    hostile = replace(
        report,
        run={**report.run, "on_device": True, "devices": [{"name": name}], "versions": {"torch": name}},
        tables={"operators": [row]},
        quality=(lacks,),
        findings=(finding, *others),
    )
    text = renderers()[form](hostile, Options(verbose=True, width=400))
    assert "All is well" in text
    assert [line for line in text.splitlines() if line.lstrip("| ").startswith(("NONE", "All is well"))] == []
    assert form == "terminal" or [line for line in text.splitlines() if line.startswith("- ⚠") and "<b>" in line] == []


def test_a_gain_of_nothing_is_no_figure():
    """Three hundred-thousandths of a step would read −0.0 %, on the page too."""
    report = starved_report()
    (finding, *_) = report.findings
    tiny = replace(report, findings=(replace(finding, gain=Gain(0.0, 0.00003)),))
    for form in ("terminal", "html"):
        text = renderers()[form](tiny, Options(lang="en"))
        assert "−0.0 %" not in text
    assert "gain not estimated" in text


@pytest.mark.parametrize(("steps", "told"), [(19, False), (20, True)])
def test_a_percentile_needs_steps_to_stand_on(steps, told):
    """Of 19 steps none lies beyond the 95th percentile but the longest."""
    run = {**starved_report().run, "steps": steps, "p95_step_ns": 99_000_000, "marked_steps": True}
    text = renderers()["html"](replace(starved_report(), run=run), Options(lang="en"))
    assert ("p95 99.0 ms" in text) == told


def test_memory_that_grows_is_shown_beside_what_gives_back_time():
    """It gives back no time, so it comes last of all; of seven findings the sixth takes the fifth's place."""
    report = starved_report()
    (finding,) = report.findings
    grows = replace(finding, bottleneck=Bottleneck.MEMORY, cost_ns_per_step=0)
    for findings, numbers in (
        ([finding] * 5 + [grows] * 2, "12346"),
        ([finding] * 7, "12345"),
        ([finding] * 4 + [grows] * 3, "12345"),
    ):
        text = renderers()["terminal"](replace(report, findings=tuple(findings)), Options())
        assert "".join(line[2] for line in text.splitlines() if line[2:3].isdigit() and line[3:5] == "  ") == numbers
        assert "2 more with -v" in text


def test_markdown_says_what_each_finding_is_worth():
    """30 to 55 % of the step, as in the terminal; memory freed where no time is; nothing where neither is known."""
    report = starved_report()
    (finding,) = report.findings
    assert "1. −30…55 % **test-rule** `train.py:41" in renderers()["markdown"](report, Options())
    freed = replace(finding, gain=Gain(0.0, 0.0), params={"saved_bytes": 3 << 20})
    assert "1. −3.00 MiB **test-rule**" in renderers()["markdown"](replace(report, findings=(freed,)), Options())
    unknown = replace(freed, params={})
    assert "1. **test-rule**" in renderers()["markdown"](replace(report, findings=(unknown,)), Options())


@pytest.mark.parametrize(("bare_ms", "told"), [(72, True), (109, False), (91, False), (89, True)])
def test_steps_that_take_otherwise_without_a_profiler_are_told_beside_the_recorded(bare_ms, told):
    """The recorded steps take 99 ms: within a tenth of 109 and 91 ms, but not of 72 and 89 ms."""
    windows = [{"name": "baseline", "steps": 9, "median_step_ns": bare_ms * 1_000_000, "overhead_ratio": 1.0}]
    report = replace(starved_report(), run={**starved_report().run, "windows": windows})
    for lang, recorded, bare in (
        ("en", "5 steps under the profiler, median 99.0 ms", " · {} without a profiler, as the job runs by itself"),
        ("zh", "5 步（开着分析器），中位数 99.0 ms", " · 未开分析器（平时那样）时 {}"),
    ):
        for form in ("terminal", "html"):
            text = renderers()[form](report, Options(lang=lang, width=200))
            assert (recorded + bare.format(format_ns(bare_ms * 1_000_000)) in text) is told
            assert (say(lang, "ui.steps", {"steps": 5, "median_ns": 99_000_000}) in text) is not told


@pytest.mark.parametrize(("median_ms", "told"), [(99, False), (91, False), (89, True), (110, False), (112, True)])
def test_the_step_that_causes_sum_to_is_called_a_mean_where_the_median_is_another(median_ms, told):
    """The causes sum to 100 ms: within a tenth of 91 and 110 ms, but not of 89 and 112 ms."""
    report = with_step(starved_report(), median_ms * 1_000_000)
    for lang, says in (("en", "{}, the mean of the recorded steps"), ("zh", "{}，为所记录各步的平均")):
        for form in ("terminal", "html"):
            text = renderers()[form](report, Options(lang=lang, width=200))
            assert (says.format("100 ms") in text) is told


def test_rules_are_counted_without_a_plural():
    """One rule found nothing, none is beyond the job: the sentence fits any number."""
    text = renderers()["terminal"](starved_report(), Options()).replace("\n", " ")
    assert "Rules that found nothing: 1; that do not apply to this job: 0." in text


def test_json_form_is_the_report():
    """The JSON renderer writes schema 1."""
    assert json.loads(renderers()["json"](starved_report(), Options()))["schema"] == 1


def test_places_are_short():
    """A long path keeps its last two parts."""
    assert place("train.py", 3, "step") == "train.py:3 step"
    assert place("/a/very/long/path/that/nobody/wants/to/read/pkg/mod.py", 3, None) == "…/pkg/mod.py:3"
    assert place(None, None, "f") == "f"


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
@pytest.mark.parametrize(("lang", "heading", "how"), [
    ("en", "What to record", "Record shapes: record_shapes"),
    ("zh", "应录制什么", "请录制形状：record_shapes"),
])  # fmt: skip
def test_an_answer_too_uncertain_lists_what_to_record(form: str, lang: str, heading: str, how: str):
    """What the rules lack, and more steps, are in every form; a sure answer has no such list."""
    sure = starved_report()
    summary = Message("verdict.undetermined.unsure", {"sure_share": 0.3, "share": 0.2})
    unsure = replace(sure, verdict=replace(sure.verdict, bottleneck=Bottleneck.UNDETERMINED, summary=summary))
    text = renderers()[form](unsure, Options(lang=lang, width=120)).replace("\\", "")
    assert heading in text
    assert how in text
    assert "schedule(wait=1, warmup=1, active=3)" in text
    assert unsure.to_record(lang)[-1] == unsure.how_to_record("longer", lang)
    unasked = tuple(NotAssessed(what, (what,)) for what in ("few_steps", "page_faults"))
    assert replace(unsure, not_assessed=(*unsure.not_assessed, *unasked)).to_record(lang) == unsure.to_record(lang)
    assert heading not in renderers()["terminal"](sure, Options(lang=lang))
    assert sure.to_record(lang) == []


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
def test_how_sure_an_abstention_is_is_not_said(form: str):
    """“Cannot know” beside “confidence 90 %” contradicts itself; a verdict has its confidence in every form."""
    sure = starved_report()
    summary = Message("verdict.undetermined.no-timeline")
    unknown = replace(sure, findings=(), verdict=Verdict(Bottleneck.UNDETERMINED, 0.9, 0.0, summary))
    told = [renderers()[form](one, Options(lang="en", width=120)) for one in (sure, unknown)]
    assert ["confidence " in text.partition('id="page-data"')[0] for text in told] == [True, False]
    assert unknown.nothing_found == "ui.cannot_tell"
    assert replace(unknown, clear=()).nothing_found == "ui.no_rule_looked"
    assert sure.nothing_found == "ui.no_findings"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_a_timeline_the_next_step_is_to_record_one(lang: str):
    """The sentence and the last lines name the command, first of all."""
    report = starved_report()
    summary = Message("verdict.undetermined.no-timeline")
    bare = replace(report, verdict=replace(report.verdict, bottleneck=Bottleneck.UNDETERMINED, summary=summary))
    lines = renderers()["terminal"](bare, Options(lang=lang, width=120)).strip().splitlines()
    assert lines[0].endswith("uncork run script.py")
    assert next(line for line in lines if line.startswith(say(lang, "ui.next"))).endswith("uncork run script.py")


def test_of_copies_a_terminal_of_100_columns_shows_line_and_count():
    """Seven columns fit: bandwidth and the other times give way to where the copy is and how often (R2.6)."""
    columns = list(COLUMNS["copies"])[1:]  # one rank has no column for it
    kept = fitting("copies", columns, 100)
    assert list(kept) == [
        *("name", "direction", "host_memory", "place", "calls_per_step", "size_bytes", "step_share", "exposed_ns")
    ]
    assert sum(kept.values()) + 2 * len(kept) <= 100 + 2
    assert list(fitting("copies", columns, 150)) == columns


def test_what_many_rules_lack_is_one_line():
    """Shapes alone: a trace with nothing else names each lack once, with all rules behind it."""
    report = analyze_recordings(sketch("steps 4 x 10ms\n  main 0ms..9ms aten::mm"))
    text = renderers()["terminal"](report, Options(lang="en", width=120, verbose=True))
    assert text.count("with_stack=True. ") == 1
    line = next(line for line in text.splitlines() if "· Record stacks" in line)
    assert "with_stack=True. compile-did-nothing, " in line


def test_a_ranks_own_step_stands_in_place_of_the_mean():
    """Rank 1 computes 8 of 10 ms, rank 0 computes 2 and waits 6 for it: each rank's own causes, not their mean."""
    text = "ranks 2\ndevice NVIDIA A100-SXM4-80GB\nsteps 4 x 10ms\n" + "".join(
        f"  rank {rank}: main 0ms..0.1ms aten::mm -> stream 7 0ms..{end}ms ampere_sgemm_128x64_tn\n"
        f"  rank {rank}: main 1ms..1.1ms nccl:all_reduce -> stream 20 {end}ms..9ms "
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL\n"
        for rank, end in ((0, 2), (1, 8))
    )
    report = analyze_recordings(sketch(text))
    causes = {entry.cause: entry.ns_per_step for entry in report.ledger_of(0)}
    assert (causes["gemm"], causes["comm_wait"]) == (2_000_000, 6_000_000)
    own = {entry.cause: entry.ns_per_step for entry in report.ledger_of(1)}
    assert (own["gemm"], "comm_wait" in own) == (8_000_000, False)
    assert sum(own.values()) == 10_000_000
    shown = renderers()["terminal"](report, Options(lang="en", rank=1))
    assert "Where a step goes · rank 1  10.0 ms" in shown
    assert "waiting for other ranks" not in shown
    assert report.ledger_of(None) is report.ledger


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_the_recorder_noted_is_told_with_the_doubts(form: str, lang: str):
    """How steps were counted decides what a step is; ids that nobody knows are no text, and nothing is told twice."""
    mark = {"terminal": "· {}", "markdown": "- {}", "html": "<li><b>·</b> <span>{}</span></li>"}[form]
    quoted = escape if form == "html" else str
    gathered, cut = (mark.format(quoted(say(lang, f"note.{one}"))) for one in ("steps-gathered", "window-cut"))
    report = starved_report()
    noted = replace(report, run={**report.run, "notes": ["steps-gathered", "window-cut", "a-new-one"]})
    told = "".join(renderers()[form](noted, Options(lang=lang, width=4000)))
    assert (gathered in told, cut in told, mark.format("note.a-new-one") in told) == (True, True, False)
    checked = replace(noted, quality=(*noted.quality, Quality("step-cut", "warning")))
    assert cut not in "".join(renderers()[form](checked, Options(lang=lang, width=4000)))


def test_a_place_is_told_where_the_folder_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may delete the folder it was started in; the file's whole path is shown then."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert place("/x/train.py", 3, None) == "/x/train.py:3"
