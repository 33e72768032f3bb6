"""Labelled real recordings: the verdict a person would give, and confidence that means something."""

import importlib.util
import inspect
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "accuracy"
AT_LEAST = 0.95
AT_MOST_WRONG = 0.02
DAMAGES = (
    "half of events lost",
    "half of device lost",
    "device ends early",
    "no kernels",
    "hole in all",
    "second half",
    "no links at all",
    "stalled step",
    "busy machine",
    "first rank only",
)
"""Those of `bench/accuracy/damages.py` that changed answers once; the bench does all of them."""


def bench(name: str = "run") -> ModuleType:
    """Return a script of the accuracy bench as a module."""
    spec = importlib.util.spec_from_file_location(f"accuracy_{name}", BENCH / f"{name}.py")
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


@pytest.mark.slow
def test_damage_makes_verdicts_decline_and_not_err(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of damaged recordings at most 2 % are answered confidently wrong, or with another confident class than whole."""
    monkeypatch.syspath_prepend(str(BENCH))
    damage = bench("damage")
    corpus = shared / "corpus"
    labels = json.loads((corpus / "labels.json").read_text("utf-8"))
    chosen = {name: damage.DAMAGES[name] for name in DAMAGES}
    found = [one for case in damage.cases(labels, corpus) for one in damage.answers(*case, chosen)]
    bad = [one for one in found if one.kind in ("wrong", "flipped")]
    assert len(found) >= 200
    assert len(bad) <= AT_MOST_WRONG * len(found), bad


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


def test_every_number_that_decides_a_verdict_has_its_reason_and_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside each (or below several in a row) stands why; `docs/accuracy.md` says how far each is from a case."""
    monkeypatch.syspath_prepend(str(BENCH))
    vary = bench("vary")
    docs = (BENCH.parents[1] / "docs" / "accuracy.md").read_text("utf-8")
    told = set(re.findall(r"^\| `([\w.]+)` \| ", docs, re.MULTILINE))
    wanted = set()
    for module in (*vary.MEASURING, *vary.JUDGING):
        source = re.sub(r"(?m)^([A-Z][A-Z0-9_]* = [\d.].*\n)(?=[A-Z][A-Z0-9_]* = [\d.])", "", inspect.getsource(module))
        wanted |= {f"{module.__name__.removeprefix('uncork.')}.{name}" for name in vary.thresholds(module)}
        lacks = re.findall(r"(?m)^([A-Z][A-Z0-9_]*) = [\d.].*\n(?!\"\"\")", source)
        assert lacks == [], module.__name__
    assert told == wanted
