"""A report to JSON and back."""

import json
import re
from dataclasses import replace
from importlib import resources

import jsonschema
import numpy as np
import pytest

from tests.unit.reports import starved_report
from uncork.errors import UnreadableError
from uncork.findings import Gain, Message, NotAssessed, Quality
from uncork.locale import LANGUAGES, say
from uncork.measure import Missing
from uncork.measure.facts import Facts
from uncork.pipeline import conclude
from uncork.render import Options, renderers
from uncork.report import dumps, from_json, loads, to_json

SCHEMA = json.loads(resources.files("uncork").joinpath("report.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_json_keeps_the_published_schema(lang):
    """The JSON of a report is valid against the schema file in the package, in both languages."""
    jsonschema.validate(json.loads(dumps(starved_report(), lang)), SCHEMA)


def test_round_trip_keeps_everything_but_the_views():
    """Reading back what was written gives an equal report."""
    report = starved_report()
    assert from_json(json.loads(dumps(report))) == report


def test_texts_come_back_in_any_language():
    """A report saved in English can be shown in Chinese: ids travel, not only sentences."""
    saved = json.loads(dumps(starved_report(), "en"))
    assert to_json(from_json(saved), "zh") == to_json(starved_report(), "zh")


def test_evidence_says_whether_it_holds():
    """0.6 > 0.05 holds, 0 < 1 holds, a figure without a threshold neither holds nor fails."""
    data = to_json(starved_report())
    assert [one["holds"] for one in data["findings"][0]["evidence"]] == [True, True, None]


def test_numpy_scalars_are_written_as_numbers():
    """Measurements may leave numpy numbers in the tables."""
    report = starved_report()
    report.tables["operators"][0]["calls"] = np.int64(3)  # type: ignore[index]
    assert json.loads(dumps(report))["tables"]["operators"][0]["calls"] == 3


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"schema": 2}, "schema 2"),
        ({}, "schema None"),
        ({"schema": 1}, "no complete uncork report"),
        ([1], r"its JSON cannot be \[1\]"),
    ],
)
def test_a_document_that_is_no_report_is_refused_in_one_line(data, says):
    """A newer schema and a broken document are told apart."""
    with pytest.raises(UnreadableError, match=says) as caught:
        loads(json.dumps(data).encode(), "saved.json")
    assert "\n" not in str(caught.value)


def test_rules_for_devices_and_ranks_do_not_apply_where_there_are_none():
    """On a CPU with one process, device records and collectives are no gap; shapes are. A lost device is one."""
    report = starved_report()
    asked = [NotAssessed("a", ("device",)), NotAssessed("b", ("collectives",)), NotAssessed("c", ("shapes",))]
    assert [report.applies(one) for one in asked] == [False, False, True]
    lost = replace(report, quality=(Quality("device-data-missing", "blocking"),))
    assert [lost.applies(one) for one in asked] == [True, True, True]


@pytest.mark.parametrize(
    ("run", "several"), [({"ranks": [0, 1]}, True), ({"ranks": [0], "world_size": 2}, True), ({"ranks": [0]}, False)]
)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_several_ranks_that_exchanged_nothing_are_not_asked_to_be_several(run, several, lang):
    """Two ranks are told to record steps with an exchange; one process, to record a job of several ranks."""
    told = replace(starved_report(), run=run).how_to_record("collectives", lang)
    assert told == say(lang, "record.collectives.several" if several else "record.collectives")
    assert told != say(lang, "record.collectives" if several else "record.collectives.several")


@pytest.mark.parametrize(
    ("steps", "key"), [(99, "record.longer.run"), (100, "record.longer.many"), (None, "record.longer.run")]
)
def test_more_steps_are_not_advised_after_many(steps, key):
    """From its hundredth step on a program is told to run on an idle machine; before, to make more steps."""
    report = replace(starved_report(), run={"format": "run", "steps_seen": steps})
    assert report.record_key("longer") == key


def test_a_recording_whose_facts_break_still_has_a_report():
    """A fault of our own in reading the head costs the head, not the report."""
    report = conclude([{Facts: Missing(("fault",))}])
    assert report.run == {"ranks": [0], "step_ns": 0}
    assert to_json(report)["verdict"]["bottleneck"] == "undetermined"


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
@pytest.mark.parametrize(
    ("lang", "says"), [("en", "is about 96.0 ms of this: the other 4.00 ms"), ("zh", "96.0 ms：其余 4.00 ms")]
)
def test_what_the_table_holds_beyond_the_verdict_is_said_below_it(form, lang, says):
    """A table of 100 ms, a sentence about 96 ms: the other 4 ms; nothing where both are the same."""
    report = starved_report()
    usual = replace(
        report, verdict=replace(report.verdict, summary=Message("test: {step_ns}", {"step_ns": 96_000_000}))
    )
    shown = renderers()[form](usual, Options(lang=lang, width=200))
    assert says in re.sub(r"</?span[^>]*>", "", shown)  # a page keeps a figure and its unit on one line
    same = replace(usual, verdict=replace(usual.verdict, summary=Message("test: {step_ns}", {"step_ns": 99_600_000})))
    assert same.usual_step(lang) == report.usual_step(lang) == ""


@pytest.mark.parametrize(("lang", "says"), [("en", "other steps take 104 ms on average"), ("zh", "平均用 104 ms")])
def test_a_verdict_about_longer_steps_than_the_tables_says_so(lang, says):
    """Short steps that stood still are left out: the table's mean is 100 ms, the verdict's 104 ms."""
    report = starved_report()
    longer = replace(report.verdict, summary=Message("test: {step_ns}", {"step_ns": 104_000_000}))
    assert says in replace(report, verdict=longer).usual_step(lang)


@pytest.mark.parametrize(("gains", "overlap"), [((0.4, 0.3), True), ((0.4, 0.1), False), ((0.7,), False)])
def test_gains_of_a_class_that_takes_less_overlap(gains, overlap):
    """Loading takes 0.6 of a step: findings worth 0.4 and 0.3 of it share time; 0.4 and 0.1 need not, nor does one."""
    report = starved_report()
    found = tuple(replace(report.findings[0], gain=Gain(0.0, high)) for high in gains)
    assert replace(report, findings=found).gains_overlap is overlap
