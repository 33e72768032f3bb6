"""The page's first screen: what people see in their first seconds, in both languages."""

import re
from dataclasses import replace
from html import unescape

import pytest

from tests.unit.reports import starved_report
from tests.web.test_views import HOLDERS
from uncork.calltree import PHASES
from uncork.findings import Bottleneck, Gain
from uncork.locale import LANGUAGES, catalogue, say
from uncork.pipeline import analyze_recordings
from uncork.render import Options
from uncork.render.about_run import about
from uncork.render.first_screen import first_screen
from uncork.render.html import render
from uncork.render.markup import code, prose
from uncork.render.tables import cell
from uncork.report import Report
from uncork.testing import sketch

TAG = re.compile(r"<[^>]+>")
KEY = re.compile(r"\b[a-z]+(?:\.[a-z_]+)+\b")


def told(html: str) -> str:
    """Return the text of a piece of HTML."""
    return unescape(TAG.sub("", html))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_key_of_the_catalogue_is_shown(lang: str) -> None:
    """A text that lacks in the catalogue would show as its key: on a snapshot's button it once did."""
    corners = {key.partition(".")[0] for key in catalogue("en")}
    for report in (starved_report(), analyze_recordings(sketch(HOLDERS), views=True)):
        words = KEY.findall(told(first_screen(report, lang)))
        assert [word for word in words if word.partition(".")[0] in corners - {"uncork"}] == []
    assert say(lang, "page.in_memory") in told(first_screen(analyze_recordings(sketch(HOLDERS)), lang))


@pytest.mark.parametrize(
    ("gain", "en", "zh"),
    [
        # Of a step of 100 ms.
        (Gain(0.3, 0.55), "could save 30 … 55 % 30.0 … 55.0 ms", "可省 30 … 55 % 30.0 … 55.0 ms"),
        (Gain(0.004, 0.55), "could save 0.4 … 55 % 400 µs … 55.0 ms", "可省 0.4 … 55 % 400 µs … 55.0 ms"),
        (Gain(0.0, 0.16), "could save up to 16 % 16.0 ms", "最多可省 16 % 16.0 ms"),
        (Gain(0.16, 0.16), "could save 16 % 16.0 ms", "可省 16 % 16.0 ms"),
        (Gain(0.0, 0.0), "gain not estimated", "收益未估算"),
    ],
)
def test_what_a_change_could_save_is_said_in_words(gain: Gain, en: str, zh: str) -> None:
    """A bare "−30 … 55 %" reads as from less to more, "−0 … 16 %" as nothing at all."""
    report = replace(starved_report(), findings=(replace(starved_report().findings[0], gain=gain),))
    for lang, text in (("en", en), ("zh", zh)):
        (shown,) = re.findall(r'<p class="gain">(.*?)</p>', first_screen(report, lang))
        assert told(shown) == text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_remark_on_the_recording_has_no_class(lang: str) -> None:
    """That flags lacked is no verdict, but "nothing dominates" beside it would read as one."""
    finding = starved_report().findings[0]
    for bottleneck, shown in ((Bottleneck.NONE, False), (Bottleneck.DATA_LOADING, True)):
        html = first_screen(replace(starved_report(), findings=(replace(finding, bottleneck=bottleneck),)), lang)
        (title,) = re.findall("<h3>(.*?)</h3>", html)
        assert (say(lang, f"class.{bottleneck.value}") in title) == shown


@pytest.mark.parametrize("lang", LANGUAGES)
def test_plain_and_hatched_are_explained_where_both_are_seen(lang: str) -> None:
    """60 % waits for data and 40 % is work; of work alone there is nothing to tell apart."""
    html = first_screen(starved_report(), lang)
    (key,) = re.findall('<small class="key">(.*?)</small>', html)
    assert told(key).split() == [say(lang, "page.work"), say(lang, "page.waiting")]
    work = replace(starved_report(), ledger=starved_report().ledger[1:])
    assert 'class="key"' not in first_screen(work, lang)


def test_a_snapshot_shows_who_held_memory_at_once() -> None:
    """4 GiB at the peak: 3 of activations, 1 of parameters; with a step's ledger there is the step instead."""
    html = first_screen(analyze_recordings(sketch(HOLDERS)), "en")
    (section,) = re.findall('<section class="ledger">(.*?)</section>', html, re.DOTALL)
    assert told(section).split("\n")[1] == "Who held memory at the peak 4.00 GiB"
    rows = [told(row) for row in re.findall("<li>(.*?)</li>", section)]
    assert rows == ["activations3.00 GiB75 %", "parameters1.00 GiB25 %"]
    assert re.findall(r'width="([\d.]+)" height="30" fill="#', section) == ["750.00", "250.00"]
    assert "Who held memory" not in first_screen(starved_report(), "en")


def test_numbers_keep_their_units_and_options_their_hyphens() -> None:
    """Lines end neither in "50" with "%" to follow, nor in "uncork run --" before "skip N"."""
    assert prose("50 %（51.1 GiB 中的 25.4 GiB）") == (
        '<span class="kept">50 %</span>（<span class="kept">51.1 GiB</span> 中的 <span class="kept">25.4 GiB</span>）'
    )
    assert prose("uncork run --skip N, or `a--b`") == (
        'uncork run <span class="kept">--skip N</span>, or <code>a--b</code>'
    )
    assert prose("12 msgs & 3 s") == '12 msgs &amp; <span class="kept">3 s</span>'


def test_long_code_ends_its_lines_at_its_joints() -> None:
    """62 characters have places to end a line; what fits a line has none, and escapes are never cut."""
    assert code("torch.profiler._ExperimentalConfig(record_python_gc_info=True)") == (
        "torch.<wbr>profiler.<wbr>_ExperimentalConfig(<wbr>record_<wbr>python_<wbr>gc_<wbr>info=<wbr>True)"
    )
    assert code("persistent_workers=True)") == "persistent_workers=True)"
    assert code("<" * 50) == "&lt;" * 50


def test_a_file_of_several_ranks_is_named_once() -> None:
    """Four ranks in one file are one source; files of one name in two folders are two."""

    def named(*sources: str) -> tuple[str, object]:
        report = replace(starved_report(), run={**starved_report().run, "sources": list(sources)})
        (head,) = re.findall('<span class="source"><bdi>(.*?)</bdi>', render(report, Options()))
        return head, about(report)[0]["facts"][0]["value"]

    assert named("a/merged.json", "a/merged.json", "a/merged.json") == ("merged.json", "merged.json")
    assert named("a/trace.json", "b/trace.json") == ("trace.json, trace.json", "trace.json, trace.json")


def test_the_first_screen_is_there_for_a_report_of_nothing() -> None:
    """Without ledger, findings and memory the verdict still stands there."""
    bare: Report = replace(starved_report(), ledger=(), findings=(), memory=None)
    assert "<h1>" in first_screen(bare, "en")
    assert '<section class="ledger">' not in first_screen(bare, "en")


def test_phases_are_told_in_the_readers_language() -> None:
    """The phases a row can be of have their words in both languages; rows in Chinese show the Chinese one."""
    assert [say("zh", f"phase.{phase}") for phase in PHASES] == ["前向", "反向", "重算", "优化器", "加载"]
    assert [cell("operators", {"phase": phase}, "phase") for phase in PHASES] == list(PHASES)
    assert cell("operators", {"phase": "backward"}, "phase", "zh") == "反向"
    assert cell("operators", {"phase": None}, "phase", "zh") == ""
    words = [cell("copies", {"host_memory": word}, "host_memory", "zh") for word in ("unknown", "pinned")]
    assert words == ["未知", "pinned"]
