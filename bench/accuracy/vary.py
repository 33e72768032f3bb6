"""How far each threshold is from the nearest labelled recording: moved up and down until a case turns wrong.

    python bench/accuracy/vary.py --labels ../shared/corpus/labels.json

Prints, per threshold, the first factor below and above one at which a case that was right is right no longer, and
which case that is. A threshold that can be halved and doubled without harm was not chosen for a file.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from uncork import classes, host_causes, quality, readers, timeline, verdict
from uncork.errors import UncorkError
from uncork.measure import Measured, Missing, MissingEvidence, Rank, losses, step_ledger, waiting
from uncork.measure.collectives import Collectives
from uncork.measure.facts import Facts
from uncork.measure.quality import RecordingQuality
from uncork.measure.step_ledger import StepLedger
from uncork.recording import Recording

Label = Mapping[str, Any]
Case = tuple[str, Label, list[Recording]]
"""Its name, what is right, its ranks."""
DOWN, UP = (0.8, 0.67, 0.5, 0.25), (1.25, 1.5, 2.0, 4.0)
THRESHOLDS: tuple[tuple[ModuleType, tuple[str, ...]], ...] = (
    (
        host_causes,
        (
            "FIRST_USE_NS",
            "FIRST_USE_RATIO",
            "FEW_CALLS",
            "UNRECORDED_NS",
            "SHORT_GAP_NS",
            "HEAVY_OP_NS",
            "TINY_OP_NS",
            "STALLED_CALL_NS",
            "STALLED_RATIO",
            "STALLED_RATIO_ONE_STEP",
        ),
    ),
    (timeline, ("RUNS_AHEAD_SHARE", "QUEUED_BEFORE_NS", "WARM_UP_RATIO", "STRAY_SHARE")),
    (losses, ("FEWEST", "FEW_CALLS", "LONG_ENOUGH_NS")),
    (
        quality,
        ("MOSTLY_FIRST_USE_SHARE", "FEW_RECORDS", "BUSY_SHARE", "LOST_SHARE", "HOLLOW_SHARE", "MOSTLY_LOST_SHARE"),
    ),
    (step_ledger, ("STALL_RATIO", "STALLED_SHARE", "PARTS")),
    (classes, ("CONTRIBUTES_SHARE", "EXPLAINS_WAIT")),
    (verdict, ("WORTH_SHARE", "KNOWN_SHARE", "OF_EXPLAINED", "OF_WINDOW", "LEAST_SURE", "UNLINKED")),
    (waiting, ("LATE_OF_ALL_WAITING", "LATE_OVER_CHANCE", "LATE_OF_STEP", "TOGETHER_SHARE")),
)


def measured(recordings: Sequence[Recording]) -> tuple[list[Measured], list[int]]:
    """Return what the verdict needs of each rank, and nothing else, in order of rank."""
    found: list[Measured] = []
    for number, recording in enumerate(recordings):
        rank = Rank(recording, number)
        one: dict[type, Any] = {}
        for kind in (Facts, StepLedger, Collectives, RecordingQuality):
            try:
                one[kind] = kind.of(rank)
            except MissingEvidence as lack:
                one[kind] = Missing(lack.what)
        found.append(one)
    claimed = [one.rank for one in recordings]
    known = [rank for rank in claimed if rank is not None]
    numbers = known if len(set(known)) == len(recordings) else list(range(len(recordings)))
    order = sorted(range(len(recordings)), key=lambda place: numbers[place])
    numbers = [numbers[place] for place in order]
    return waiting.with_waits([found[place] for place in order], numbers), numbers


def right(label: Label, recordings: Sequence[Recording]) -> bool:
    """Return whether class, contributing classes and late ranks are what the label says."""
    ranks, numbers = measured(recordings)
    said = verdict.judge(ranks, numbers, [], quality.gate(ranks, numbers))
    named = {said.bottleneck.value, *(one.value for one in said.contributing)}
    return (
        said.bottleneck.value in label["accept"]
        and not named & set(label.get("not", ()))
        and named >= set(label.get("contributing", ()))
        and sorted(said.late_ranks) == label.get("late_ranks", sorted(said.late_ranks))
    )


def cases(labels: Mapping[str, Label], root: Path) -> Iterator[Case]:
    """Yield the cases that can be read."""
    for case, label in sorted(labels.items()):
        try:
            recordings = [one for file in label["files"] for one in readers.read(root / file)]
        except UncorkError:
            continue
        yield case, label, recordings


def right_cases(labels: Mapping[str, Label], root: Path) -> Iterator[Case]:
    """Yield the cases that have a timeline and are right as things stand."""
    for case, label, recordings in cases(labels, root):
        if all(one.events is not None for one in recordings) and right(label, recordings):
            yield case, label, recordings


def first_wrong(module: ModuleType, name: str, factors: Sequence[float], held: Sequence[Case]) -> str:
    """Return the first factor that makes a case wrong and the cases, or that none of them does."""
    before = getattr(module, name)
    try:
        for factor in factors:
            setattr(module, name, type(before)(before * factor))
            wrong = [case for case, label, recordings in held if not right(label, recordings)]
            if wrong:
                return f"× {factor:g}: {', '.join(wrong)}"
    finally:
        setattr(module, name, before)
    return f"none to × {factors[-1]:g}"


def main() -> int:
    """Return 0."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--labels", type=Path, required=True)
    arguments.add_argument("--only", nargs="*", default=[""], help="thresholds, or beginnings of their names")
    chosen = arguments.parse_args()
    held = list(right_cases(json.loads(chosen.labels.read_text("utf-8")), chosen.labels.parent))
    print(f"{len(held)} cases\n\n| threshold | value | lower | higher |\n|---|---|---|---|")
    for module, names in THRESHOLDS:
        for name in names:
            if not name.startswith(tuple(chosen.only)):
                continue
            lower, higher = (first_wrong(module, name, factors, held) for factors in (DOWN, UP))
            where = f"`{module.__name__.removeprefix('uncork.')}.{name}`"
            print(f"| {where} | {getattr(module, name):g} | {lower} | {higher} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
