"""How far each threshold is from the nearest labelled recording: moved up and down until a case turns wrong.

    python bench/accuracy/vary.py --labels ../shared/corpus/labels.json

Prints, per threshold, the first factor below and above one at which a case that was right is right no longer, and
which case that is. A threshold that can be halved and doubled without harm was not chosen for a file.
"""

import argparse
import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from uncork import classes, crowding, host_causes, impossible, pipeline, quality, readers, steps, timeline, verdict
from uncork.errors import UncorkError
from uncork.measure import Measured, clocks, core_waits, device_roofline, losses, measure, step_ledger, waiting
from uncork.recording import Recording

Label = Mapping[str, Any]
Case = tuple[str, Label, list[Recording]]
"""Its name, what is right, its ranks."""
DOWN, UP = (0.8, 0.67, 0.5, 0.25), (1.25, 1.5, 2.0, 4.0)
MEASURING = (host_causes, steps, timeline, losses, step_ledger, core_waits, clocks, device_roofline)
JUDGING = (quality, crowding, impossible, classes, verdict, waiting)
"""Modules whose numbers decide a verdict: those of the first change what is measured, those of the second do not."""
MOST_NAMED = 5
NUMBER = re.compile(r"^([A-Z][A-Z0-9_]*) = [\d.]", re.MULTILINE)


def thresholds(module: ModuleType) -> list[str]:
    """Return the names of a module's numbers, in the order in which they stand there."""
    return NUMBER.findall(inspect.getsource(module))


def holders(module: ModuleType, name: str) -> list[ModuleType]:
    """Return a number's module and those that import it from there."""
    importing = re.compile(rf"^from {re.escape(module.__name__)} import [^\n]*\b{name}\b", re.MULTILINE)
    ours = [one for key, one in sys.modules.items() if key.startswith("uncork.") and name in vars(one)]
    return [module, *(one for one in ours if one is not module and importing.search(inspect.getsource(one)))]


def right(label: Label, ranks: Sequence[Measured]) -> bool:
    """Return whether class, contributing classes and late ranks are what the label says."""
    said = pipeline.conclude(ranks).verdict
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


def measured(recordings: Sequence[Recording]) -> list[Measured]:
    """Return the measurements of each rank."""
    return [measure(one) for one in recordings]


def first_wrong(module: ModuleType, name: str, factors: Sequence[float], held: Mapping[str, tuple[Any, ...]]) -> str:
    """Return the first factor that makes a case wrong and the cases, or that none of them does.

    Args:
        module: Where the threshold stands.
        name: Its name.
        factors: What it is multiplied with, one after the other.
        held: Case → its label, its recordings, their measurements as things stand.
    """
    before, places = getattr(module, name), holders(module, name)
    try:
        for factor in factors:
            for one in places:
                setattr(one, name, type(before)(before * factor))
            wrong = [
                case
                for case, (label, recordings, ranks) in held.items()
                if not right(label, measured(recordings) if module in MEASURING else ranks)
            ]
            if wrong:
                return f"× {factor:g}: {', '.join(wrong) if len(wrong) <= MOST_NAMED else f'{len(wrong)} cases'}"
    finally:
        for one in places:
            setattr(one, name, before)
    return f"none to × {factors[-1]:g}"


def main() -> int:
    """Return 0."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--labels", type=Path, required=True)
    arguments.add_argument("--only", nargs="*", default=[""], help="thresholds, or beginnings of their names")
    chosen = arguments.parse_args()
    held = {}
    for case, label, recordings in cases(json.loads(chosen.labels.read_text("utf-8")), chosen.labels.parent):
        if all(one.events is not None for one in recordings) and right(label, ranks := measured(recordings)):
            held[case] = label, recordings, ranks
    print(f"{len(held)} cases\n\n| threshold | value | lower | higher |\n|---|---|---|---|")
    for module in (*MEASURING, *JUDGING):
        for name in thresholds(module):
            if not name.startswith(tuple(chosen.only)):
                continue
            lower, higher = (first_wrong(module, name, factors, held) for factors in (DOWN, UP))
            where = f"`{module.__name__.removeprefix('uncork.')}.{name}`"
            print(f"| {where} | {getattr(module, name):g} | {lower} | {higher} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
