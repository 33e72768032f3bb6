"""Saved reports with fields of wrong types: each is refused in one line that names file and field, none crashes."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

import uncork
from tests.unit.reports import starved_report
from uncork.cli import main
from uncork.compare import compare
from uncork.errors import UnreadableError
from uncork.render.comparison import render_comparison
from uncork.report import dumps, loads
from uncork.schema import misfits

SCHEMA = json.loads(Path(uncork.__file__).with_name("report.schema.json").read_text("utf-8"))
_NOTHING = object()
WRONG = (_NOTHING, None, "x", "", [1], [], {"a": 1}, -5, True, 1.5, 10**30)


def broken_reports() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield a report with one field after another left out or replaced by values of other types, and the way to it."""
    whole = json.loads(dumps(starved_report()))
    ways = list(_ways(whole))
    assert len(ways) > 100, "the walk finds the fields it looks for"
    for way in ways:
        for value in WRONG:
            report = copy.deepcopy(whole)
            above = report
            for step in way[:-1]:
                above = above[step]
            above[way[-1]] = value
            if value is _NOTHING:
                del above[way[-1]]
            yield ".".join(map(str, way)), report


def _ways(value: object, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if way:
        yield way
    below = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, one in below:
        yield from _ways(one, (*way, name))


def test_the_schema_is_read_as_jsonschema_reads_it() -> None:
    """The library, which only tests need, is the judge of which documents fit."""
    judge = jsonschema.Draft202012Validator(SCHEMA)
    fits = {True: 0, False: 0}
    for way, report in broken_reports():
        fit = judge.is_valid(report)
        assert (next(misfits(report, SCHEMA, SCHEMA), None) is None) is fit, (way, report)
        fits[fit] += 1
    assert fits[True] > 100
    assert fits[False] > 500


def test_no_field_of_a_saved_report_ends_in_a_fault() -> None:
    """What is not refused can be compared with a whole report, either way round, and shown."""
    whole = starved_report()
    refused = 0
    for _, broken in broken_reports():
        try:
            report = loads(json.dumps(broken).encode(), "saved.json")
        except UnreadableError as refusal:
            assert str(refusal).startswith("saved.json is ")
            refused += 1
            continue
        for comparison in (compare(report, whole), compare(whole, report)):
            render_comparison(comparison, "en")
    assert refused > 500


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        (("run", "steps"), "x", 'its run.steps cannot be "x"'),
        (("findings", 0, "location", "file"), [1], "its findings[0].location.file cannot be [1]"),
        (("ledger", 0, "ns_per_step"), -5, "its ledger[0].ns_per_step cannot be -5"),
        (("ledger", 0, "ns_per_step"), 10**400, f"its ledger[0].ns_per_step cannot be 1{'0' * 39}…"),
        (("verdict", "share"), 1.5, "its verdict.share cannot be 1.5"),
        (("tables", "operators", 0, "cpu_self_ns"), "y" * 99, f'cpu_self_ns cannot be "{"y" * 39}…'),
        (("run", "median_step_ns"), float("nan"), "is a damaged report (NaN is no JSON)"),
        (("run",), {}, "it lacks run.ranks"),
        (("schema",), 2, "schema 2"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(
    field: tuple[str | int, ...],
    value: object,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line on standard error, exit code 2."""
    report = json.loads(dumps(starved_report()))
    above = report
    for step in field[:-1]:
        above = above[step]
    above[field[-1]] = value
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps(report), "utf-8")
    assert main(["compare", str(saved), str(saved), "--lang", "en"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"uncork: {saved} is ")
    assert says in err
    assert len(err.splitlines()) == 1


def test_what_a_later_version_adds_is_left_aside() -> None:
    """Changes of a schema are additive: keys that are not known stop nothing."""
    report = json.loads(dumps(starved_report()))
    report["new"] = 1
    for one in (report["verdict"], report["ledger"][0], report["findings"][0], report["findings"][0]["location"]):
        one["new"] = {"a": 1}
    assert loads(json.dumps(report).encode(), "saved.json") == starved_report()
