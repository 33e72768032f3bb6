"""Labelled real recordings: the verdict a person would give, and confidence that means something."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "accuracy" / "run.py"
AT_LEAST = 0.95


def bench() -> ModuleType:
    """Return the accuracy bench as a module."""
    spec = importlib.util.spec_from_file_location("accuracy_bench", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_verdicts_on_labelled_recordings(shared: Path) -> None:
    """Right on at least 95 %, over all cases and as the mean over classes; nothing faults; sure verdicts are right."""
    accuracy = bench()
    corpus = shared / "corpus"
    labels = json.loads((corpus / "labels.json").read_text("utf-8"))
    outcomes = [accuracy.outcome(case, label, corpus) for case, label in sorted(labels.items())]
    text = "\n".join(accuracy.table(outcomes, markdown=False))
    right, balanced, _ = accuracy.shares(outcomes)
    assert not [one for one in outcomes if one.answer == "fault"], text
    assert min(right, balanced) >= AT_LEAST, text
    _, _, good, given = accuracy.calibration(outcomes)[-1]
    assert given >= 20, text
    assert good >= AT_LEAST * given, text


def test_a_wrong_answer_is_told_as_such() -> None:
    """The bench itself: each kind of fault in a report is found, and a right report has none."""
    accuracy = bench()
    report = {
        "verdict": {"bottleneck": "compute", "contributing": ["memory"], "late_ranks": [1]},
        "findings": [{"title": "Use TF32", "advice": [], "location": {"op": "aten::mm", "module": "net"}}],
        "quality": [{"id": "no-steps"}],
    }
    right = {
        "accept": ["compute"],
        "contributing": ["memory"],
        "late_ranks": [1],
        "says": ["tf32"],
        "not": ["framework"],
    }
    assert list(accuracy.faults(right, report)) == []
    wrong = {
        "accept": ["framework"],
        "not": ["memory"],
        "contributing": ["data_loading"],
        "late_ranks": [],
        "says": ["pin_memory"],
        "not_blamed": ["aten::mm"],
        "device_data_missing": True,
        "no_location": True,
    }
    assert len(list(accuracy.faults(wrong, report))) == 8
