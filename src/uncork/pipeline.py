"""The whole way on one screen: paths → recordings → measurements → findings → verdict → Report."""

import contextlib
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from uncork import readers
from uncork.errors import UncorkError
from uncork.executors import Executor
from uncork.executors.local import Local
from uncork.findings import Finding
from uncork.ledger import OUTSIDE
from uncork.measure import Measured, measure, present
from uncork.measure.comm_summary import comm_summary
from uncork.measure.facts import Facts
from uncork.measure.step_ledger import StepLedger, typical
from uncork.measure.waiting import with_waits
from uncork.quality import gate, lacks
from uncork.reading_rules import class_evidence, disagreements
from uncork.recording import Recording
from uncork.report import Report
from uncork.rules import assess, rules
from uncork.rules.behind_late import with_cause
from uncork.rules.page import page
from uncork.sections import ledger_section, memory_section, run_section, tables_section, views_section
from uncork.verdict import judge
from uncork.wording import larger_elsewhere

Progress = Callable[[int, int, str], None]


def analyze(
    paths: Sequence[Path], *, views: bool = False, executor: Executor | None = None, progress: Progress | None = None
) -> Report:
    """Return what uncork concludes from recordings that exist.

    Args:
        paths: Files, folders of ranks, or run folders.
        views: Whether to keep what the page draws.
        executor: Where files are read and measured; this machine by default.
        progress: Called with (files done, files in all, the file that was done); within a single file with megabytes.

    Raises:
        UncorkError: A path is missing or no recording.
    """
    files = readers.expand(paths)
    work = partial(measure_file, views=views)
    if progress and executor is None and len(files) == 1:
        name = files[0].name
        work = partial(work, progress=lambda done, size: progress(done >> 20, size >> 20, f"{name}, MB"))
    measured: list[Measured] = []
    for done, (path, ranks) in enumerate(zip(files, (executor or Local()).map(work, files), strict=True), start=1):
        measured.extend(ranks)
        if progress:
            progress(done, len(files), path.name)
    report = conclude(measured)
    typed = shlex.join(map(str, _shortest(paths, files)))
    return replace(report, findings=tuple(_of_recording(one, typed) for one in report.findings))


def measure_file(
    path: Path, *, views: bool = False, progress: Callable[[int, int], None] | None = None
) -> list[Measured]:
    """Return the measurements of each rank in a file: this is what runs where the file lies."""
    return [measure(recording, views=views) for recording in readers.read(path, progress)]


def analyze_recordings(recordings: Iterable[Recording], *, views: bool = False) -> Report:
    """Return what uncork concludes from recordings that were read already, one per rank."""
    return conclude([measure(recording, views=views) for recording in recordings])


def conclude(measured: Sequence[Measured]) -> Report:
    """Return the report on the measurements of all ranks."""
    latest = _latest(measured)
    earlier = len(measured) - len(latest)
    measured, numbers = _in_order(latest)
    measured = with_waits(measured, numbers)
    quality = gate(measured, numbers, earlier)
    ledger, step_ns = ledger_section(measured)
    # Rules see what the verdict sees: first use, stalls and steps that stood still leave the denominator.
    usual = _without_stalls(measured)
    entries, usual_ns = ledger_section(usual)
    steady_ns = usual_ns - sum(entry.ns_per_step for entry in entries if entry.cause in OUTSIDE)
    findings, not_assessed, clear = assess(usual, numbers, steady_ns, lacks(measured, quality))
    findings = with_cause(findings, usual, numbers)
    verdict = replace(judge(measured, numbers, findings, quality), evidence=class_evidence(measured))
    larger = larger_elsewhere(verdict, {entry.cause: entry.share for entry in ledger}, findings)
    return Report(
        verdict=replace(verdict, disagreements=disagreements(verdict) + larger),
        ledger=ledger,
        findings=tuple(findings),
        not_assessed=tuple(not_assessed),
        clear=tuple(clear),
        quality=tuple(quality),
        run=run_section(measured, numbers, step_ns),
        tables=tables_section(measured, numbers),
        memory=memory_section(measured, numbers),
        comm=comm_summary(measured, numbers),
        views=views_section(measured, numbers),
    )


def _shortest(paths: Sequence[Path], files: Sequence[Path]) -> Sequence[Path]:
    """Return the folder of the files where it stands for all of them and no others, else the paths as given."""
    folders = {path.parent for path in paths} if len(paths) > 1 else set()
    if len(folders) == 1:
        with contextlib.suppress(UncorkError):
            return [*folders] if sorted(readers.expand([*folders])) == sorted(files) else paths
    return paths


def _of_recording(one: Finding, typed: str) -> Finding:
    """Return a finding whose advice is to look at the recording again, with the paths that it was found in."""
    rule = rules().get(one.rule)
    told = rule is not None and rule.has_page and "{recording}" in page(rule.folder, rule.id, "en").body
    return replace(one, params={**one.params, "recording": typed}) if told else one


def _without_stalls(measured: Sequence[Measured]) -> list[Measured]:
    """Return the measurements with the ledgers of the steps that stood still on no rank."""
    places = [place for place, one in enumerate(measured) if isinstance(one.get(StepLedger), StepLedger)]
    usual: list[Measured] = list(measured)
    for place, ledger in zip(places, typical(present([measured[place] for place in places], StepLedger)), strict=True):
        usual[place] = {**measured[place], StepLedger: ledger}
    return usual


def _latest(measured: Sequence[Measured]) -> list[Measured]:
    """Return the measurements without earlier recordings of ranks that were recorded again, as a schedule repeats.

    All ranks are known, and there are more recordings with steps than the job has ranks: one of each rank counts. Or
    one process, which is no rank of several, recorded them one after the other.
    """
    ranks = [one.get(Facts) if isinstance(one.get(StepLedger), StepLedger) else None for one in measured]
    facts = [one for one in ranks if isinstance(one, Facts)]
    world = max((one.world_size or 0 for one in facts), default=0)
    if _one_after_the_other(facts):
        latest = max(facts, key=lambda one: one.operators_ns)
        last = {latest.rank: ranks.index(latest)}
    elif not 1 < world < len(facts) or any(one.rank is None for one in facts):
        return list(measured)
    else:
        last = {one.rank: place for place, one in enumerate(ranks) if isinstance(one, Facts)}
    kept = set(last.values())
    return [one for place, one in enumerate(measured) if place in kept or not isinstance(ranks[place], Facts)]


def _one_after_the_other(facts: Sequence[Facts]) -> bool:
    """Return whether one process made all recordings, none before the one before had ended."""
    if len({(one.process, one.rank) for one in facts}) != 1 or any((one.world_size or 1) > 1 for one in facts):
        return False
    spans = sorted(one.operators_ns for one in facts)
    return bool(facts[0].process) and all(ended <= begins for (_, ended), (begins, _) in pairwise(spans))


def _in_order(measured: Sequence[Measured]) -> tuple[list[Measured], list[int]]:
    """Return the measurements in order of rank, and the rank of each.

    Where two recordings claim the same rank, or one claims none, ranks are numbered in the order of the files.
    """
    claimed = [facts.rank if isinstance(facts := one.get(Facts), Facts) else None for one in measured]
    if None in claimed or max(Counter(claimed).values(), default=1) > 1:
        return list(measured), list(range(len(measured)))
    order = sorted(range(len(measured)), key=lambda place: claimed[place] or 0)
    return [measured[place] for place in order], [claimed[place] or 0 for place in order]
