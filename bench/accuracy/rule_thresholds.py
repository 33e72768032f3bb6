"""How far each rule's thresholds are from the nearest labelled recording, on either side.

    python bench/accuracy/rule_thresholds.py --labels ../shared/corpus/labels.json > docs/rule-thresholds.md

Each rule is asked twice: as it is, and with its thresholds out of the way, so that it tells what it measured where it
stays silent too. Nothing else is changed. A rule without a row in the table met no case that it could look at.
"""

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from vary import cases

from uncork.findings import Evidence
from uncork.locale import say
from uncork.measure import Measured, measure
from uncork.measure.facts import Facts
from uncork.measure.waiting import with_waits
from uncork.rules import beside_work, loading, rules, worth
from uncork.rules.rule import Rule
from uncork.testing import examples, page_of, sketch
from uncork.units import format_quantity

Job = tuple[list[Measured], list[int]]
Known = dict[str, tuple[float, str]]
"""Metric → threshold and relation."""
SHARED = (worth, loading, beside_work)
"""Modules whose thresholds several rules use."""
CLOSE = 0.1
"""A case within a tenth of the threshold is marked: the threshold must have a reason of its own."""
HEAD = """# How far the rules' thresholds are from a case

For every figure that a rule holds against a threshold: the nearest value below and above it among the labelled
recordings, whether or not the rule speaks there (other conditions, or a finding that explains it away, may keep it
silent). Cases within a tenth of the threshold are marked with `!`. The reason for each threshold stands beside it in
the rule's file (`src/uncork/rules/CLASS/NAME.py`). Verdicts have [a table of their own](accuracy.md).

Made by `python bench/accuracy/rule_thresholds.py --labels labels.json`; the head of `bench/accuracy/run.py` describes
the labels file.

| rule | figure | threshold | nearest below | nearest above | found in |
|---|---|---|---|---|---|"""


def job(recordings: Sequence[Any]) -> Job:
    """Return the measurements of a job's ranks, in order of rank, and their numbers."""
    measured = [measure(one) for one in recordings]
    claimed = [one[Facts].rank if isinstance(one.get(Facts), Facts) else None for one in measured]  # type: ignore[union-attr]
    known = None not in claimed and len(set(claimed)) == len(claimed)
    numbers = [one if known and one is not None else place for place, one in enumerate(claimed)]
    order = sorted(range(len(measured)), key=numbers.__getitem__)
    numbers = [numbers[place] for place in order]
    return with_waits([measured[place] for place in order], numbers), numbers


def thresholds(one: Rule) -> Known:
    """Return what a rule holds its figures against, from the findings of its page's own examples."""
    known: Known = {}
    for example in examples(page_of(one.id).read_text("utf-8")):
        if example.outcome == "found":
            ranks, numbers = job(sketch(example.sketch))
            for evidence in _evidence(one, ranks, numbers):
                if evidence.threshold:
                    known[evidence.metric] = (evidence.threshold, evidence.relation)
    return known


@contextmanager
def out_of_the_way(one: Rule, known: Known) -> Iterator[None]:
    """Let a rule speak whatever it measures: each constant that is one of its thresholds holds always."""
    modules: list[ModuleType] = [sys.modules[one.predicate.__module__], *SHARED]
    always = {value: 0.0 if relation == ">" else math.inf for value, relation in known.values()}
    before = [
        (module, name, value)
        for module in modules
        for name, value in vars(module).items()
        if name.lstrip("_").isupper() and isinstance(value, (int, float)) and value in always
    ]
    try:
        for module, name, value in before:
            setattr(module, name, type(value)(always[value]) if math.isfinite(always[value]) else always[value])
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _evidence(one: Rule, ranks: Sequence[Measured], numbers: Sequence[int]) -> Iterator[Evidence]:
    """Yield what a rule says it measured; nothing where it cannot look, or stumbles without its thresholds."""
    try:
        outcome = one.check(ranks, numbers, 1)
    except (ArithmeticError, LookupError, StopIteration, ValueError):
        return
    for finding in outcome if isinstance(outcome, list) else ():
        yield from finding.evidence


def row(one: Rule, metric: str, held: tuple[float, str], values: Mapping[str, float], found: Sequence[str]) -> str:
    """Return a line of the table."""
    threshold, relation = held
    below = max(((value, case) for case, value in values.items() if value < threshold), default=None)
    above = min(((value, case) for case, value in values.items() if value >= threshold), default=None)
    unit = UNITS[metric]

    def spelt(near: tuple[float, str] | None) -> str:
        if near is None:
            return "—"
        mark = " !" if abs(near[0] - threshold) <= CLOSE * threshold else ""
        return f"{format_quantity(f'value_{unit}', near[0])} ({near[1]}){mark}"

    cells = (
        f"`{one.id}`",
        say("en", f"metric.{metric}"),
        f"{relation} {format_quantity(f'value_{unit}', threshold)}",
        spelt(below),
        spelt(above),
        ", ".join(found) or "—",
    )
    return f"| {' | '.join(cells)} |"


TAIL = """
## The marked rows

* Lines of the guides that this project began with: 70 % in three operators, 85 % and 30 % utilisation, 10,000 tiny
  calls. They are shown as evidence and decide nothing; the mean kernel of 25 µs raises the confidence only. A fifth of
  the step is the same guides' proof that compiling pays.
* Definitions: more than one start, more than one region, more than an even share of the waiting (1 / ranks), a sequence
  at which attention's products overtake the projections.
* Five percent of the step (`worth.NOTABLE_SHARE`), below which no change is worth making: the case below it is busy
  computing. Ten percent for memory operators, the share from which a class contributes to a verdict.
* 20 µs per call (`host_causes.TINY_OP_NS`): no verdict depends on it between a quarter and four times of it.
* Half and a third of the peak (`snapshot_memory.PEAK_SHARE`, `STATE_SHARE`): the snapshot between the two is labelled
  memory or undetermined, and its activations are the larger part.
* Conversions of a tenth of the convolutions' time, and wrappers that do a fifth of their time themselves: the first
  needs 2 % of the step as well, the second is a remark that costs nothing.
"""
UNITS: dict[str, str] = {}
"""Metric → unit, as met."""


def table(jobs: Mapping[str, Job]) -> Iterator[str]:
    """Yield the lines of the table, rule by rule."""
    for one in rules().values():
        known = thresholds(one)
        found = [case for case, (ranks, numbers) in jobs.items() if any(True for _ in _evidence(one, ranks, numbers))]
        values: dict[str, dict[str, float]] = defaultdict(dict)
        with out_of_the_way(one, known):
            for case, (ranks, numbers) in jobs.items():
                for evidence in _evidence(one, ranks, numbers):
                    UNITS[evidence.metric] = evidence.unit
                    values[evidence.metric].setdefault(case, evidence.value)
        for metric in known:
            if values.get(metric):
                yield row(one, metric, known[metric], values[metric], found)


def main() -> int:
    """Return 0."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--labels", type=Path, required=True)
    chosen = arguments.parse_args()
    labels = json.loads(chosen.labels.read_text("utf-8"))
    jobs: dict[str, Job] = {case: job(recordings) for case, _, recordings in cases(labels, chosen.labels.parent)}
    print(HEAD)
    for line in table(jobs):
        print(line, flush=True)
    print(TAIL, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
