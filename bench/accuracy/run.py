"""Holds verdicts against labelled recordings: who is right, per class, and whether confidence means what it says.

    python bench/accuracy/run.py --labels ../shared/corpus/labels.json            # the table
    python bench/accuracy/run.py --labels labels.json --at-least 0.95 --only W01  # a gate, some cases
    python bench/accuracy/run.py --labels labels.json --markdown                  # the table for the docs

A labels file maps a case to its files (below the labels' folder) and to what a person concludes: ``accept`` (classes
that are right), ``not`` (classes that must not be named), ``contributing`` (classes that must be), ``late_ranks``,
``says`` (words of which one must stand in a finding), ``not_blamed`` (operators no finding may blame),
``device_data_missing``, ``no_location``, and ``foreign`` (a stated refusal is right, too).
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncork.errors import UncorkError
from uncork.pipeline import analyze
from uncork.report import to_json

Label = Mapping[str, Any]
BINS = ((0.0, 0.5), (0.5, 0.65), (0.65, 0.8), (0.8, 1.01))
"""Confidence from 0.8 on is a promise: at least 95 in 100 of those verdicts are right."""


@dataclass(frozen=True)
class Outcome:
    """What became of one case.

    Args:
        case: Its name.
        label: What is right.
        answer: The verdict's class, ``refused`` or ``fault``.
        confidence: Of the verdict; None without one.
        wrong: What is wrong, empty when all is right.
        seconds: Time it took.
    """

    case: str
    label: Label
    answer: str
    confidence: float | None
    wrong: tuple[str, ...]
    seconds: float


def faults(label: Label, report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a report's verdict and findings for a label."""
    verdict, findings = report["verdict"], report["findings"]
    main, also = verdict["bottleneck"], {verdict["bottleneck"], *verdict["contributing"]}
    if main not in label["accept"]:
        yield f"{main}, not {' or '.join(label['accept'])}"
    yield from (f"names {one}" for one in label.get("not", ()) if one in also)
    yield from (f"leaves out {one}" for one in label.get("contributing", ()) if one not in also)
    if "late_ranks" in label and sorted(verdict["late_ranks"]) != label["late_ranks"]:
        yield f"late ranks {verdict['late_ranks']}, not {label['late_ranks']}"
    text = _fold(json.dumps([[one["title"], one["advice"]] for one in findings], ensure_ascii=False))
    if "says" in label and not any(_fold(word) in text for word in label["says"]):
        yield f"no finding says {' or '.join(label['says'])}"
    places = [one.get("location") or {} for one in findings]
    yield from (f"blames {name}" for name in label.get("not_blamed", ()) if name in [one.get("op") for one in places])
    if label.get("device_data_missing") and "device-data-missing" not in [one["id"] for one in report["quality"]]:
        yield "does not see that device records are missing"
    if label.get("no_location") and any(one.get("module") or one.get("file") for one in places):
        yield "claims a layer or line that the recording cannot show"


def _fold(text: str) -> str:
    return text.casefold().replace("-", "_").replace(" ", "_")


def outcome(case: str, label: Label, root: Path) -> Outcome:
    """Return what the analysis makes of one case."""
    begun = time.perf_counter()
    answer, confidence, wrong = "fault", None, ()
    try:
        report = to_json(analyze([root / file for file in label["files"]]))
        answer, confidence = report["verdict"]["bottleneck"], report["verdict"]["confidence"]
        wrong = tuple(faults(label, report))
    except UncorkError as refusal:
        answer, wrong = "refused", () if label.get("foreign") else (f"refused: {refusal}",)
    except Exception as fault:  # noqa: BLE001 - a fault in one case is that case's result
        wrong = (f"{type(fault).__name__}: {fault}",)
    return Outcome(case, label, answer, confidence, wrong, time.perf_counter() - begun)


def shares(outcomes: Sequence[Outcome]) -> tuple[float, float, dict[str, tuple[int, int]]]:
    """Return the share that is right, the mean over classes, and per class (right, all)."""
    classes: dict[str, list[bool]] = defaultdict(list)
    for one in outcomes:
        classes[one.label["accept"][0]].append(not one.wrong)
    right = sum(not one.wrong for one in outcomes) / max(len(outcomes), 1)
    balanced = sum(sum(each) / len(each) for each in classes.values()) / max(len(classes), 1)
    return right, balanced, {name: (sum(each), len(each)) for name, each in sorted(classes.items())}


def calibration(outcomes: Sequence[Outcome]) -> list[tuple[float, float, int, int]]:
    """Return (from, to, right classes, verdicts) for each band of confidence; only the class counts here."""
    bands = []
    for low, high in BINS:
        given = [one for one in outcomes if one.confidence is not None and low <= one.confidence < high]
        bands.append((low, high, sum(one.answer in one.label["accept"] for one in given), len(given)))
    return bands


def table(outcomes: Sequence[Outcome], *, markdown: bool) -> Iterator[str]:
    """Yield the lines of the table, the shares and the calibration."""
    if markdown:
        yield "| case | verdict | confidence | right is | |\n|---|---|---|---|---|"
    for one in outcomes:
        sure = "" if one.confidence is None else f"{one.confidence:.2f}"
        cells = (one.case, one.answer, sure, "/".join(one.label["accept"]), "; ".join(one.wrong) or "right")
        if markdown:
            yield f"| {' | '.join(cells)} |"
        else:
            yield f"{cells[0]:6} {cells[1]:14} {cells[2]:5} {cells[3]:36} {cells[4]}  ({one.seconds:.1f} s)"
    right, balanced, classes = shares(outcomes)
    yield ""
    yield ", ".join(f"{name} {good} of {all_}" for name, (good, all_) in classes.items())
    yield f"right: {right:.1%} of {len(outcomes)}; mean over classes: {balanced:.1%}"
    for low, high, good, given in calibration(outcomes):
        if given:
            yield f"confidence {low:.2f} to {min(high, 1):.2f}: {good} of {given} classes right"


def main() -> int:
    """Return 0 when both shares reach the limit, else 1."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--labels", type=Path, required=True)
    arguments.add_argument("--root", type=Path, help="folder of the files; the labels' own by default")
    arguments.add_argument("--only", nargs="*", help="cases, or beginnings of their names")
    arguments.add_argument("--at-least", type=float, default=0.0)
    arguments.add_argument("--markdown", action="store_true")
    chosen = arguments.parse_args()
    labels: dict[str, Label] = json.loads(chosen.labels.read_text("utf-8"))
    root = chosen.root or chosen.labels.parent
    wanted = {case: label for case, label in sorted(labels.items()) if case.startswith(tuple(chosen.only or ("",)))}
    outcomes = [outcome(case, label, root) for case, label in wanted.items()]
    for line in table(outcomes, markdown=chosen.markdown):
        print(line)
    right, balanced, _ = shares(outcomes)
    return int(min(right, balanced) < chosen.at_least)


if __name__ == "__main__":
    sys.exit(main())
