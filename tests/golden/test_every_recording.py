"""Every shared recording is analysed, or refused for a stated reason; what comes out keeps the published form."""

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from uncork.errors import UnreadableError
from uncork.pipeline import analyze
from uncork.render import Options, renderers
from uncork.report import dumps, from_json

SCHEMA = jsonschema.Draft202012Validator(
    json.loads(resources.files("uncork").joinpath("report.schema.json").read_text("utf-8"))
)


def recordings(shared: Path) -> list[list[Path]]:
    """Return the files of each labelled case, and each of the other recordings."""
    corpus = shared / "corpus"
    labels = json.loads((corpus / "labels.json").read_text("utf-8"))
    others = sorted(path for path in (corpus / "recordings").rglob("*") if path.suffix in {".gz", ".pstats"})
    return [[corpus / file for file in label["files"]] for label in labels.values()] + [[path] for path in others]


@pytest.mark.slow
def test_every_recording_gives_a_whole_report_or_a_reason(shared, monkeypatch):
    """Valid JSON, a ledger that sums to its step, and text in both languages; or one line that says why not."""
    monkeypatch.setenv("UNCORK_STRICT", "1")
    analysed = 0
    for files in recordings(shared):
        try:
            report = analyze(files)
        except UnreadableError as refusal:
            assert "\n" not in str(refusal), files
            continue
        data = json.loads(dumps(report))
        problems = [f"{list(error.path)}: {error.message[:100]}" for error in SCHEMA.iter_errors(data)]
        assert not problems, (files, problems[:3])
        assert sum(entry.ns_per_step for entry in report.ledger) == report.run["step_ns"], files
        assert dumps(from_json(data)) == dumps(report), files
        for lang in ("en", "zh"):
            text = renderers()["terminal"](report, Options(lang=lang, verbose=True))
            assert "{" not in text.split("fix", 1)[0].split("改法", 1)[0], (files, "a placeholder was not filled")
        analysed += 1
    assert analysed > 100
