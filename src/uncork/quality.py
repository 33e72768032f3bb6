"""The quality gate: what a recording cannot carry is said before any verdict; ids are those of the manual."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from uncork.crowding import ENOUGH_OTHERS, UNLIKE_RATIO, crowding
from uncork.findings import Quality
from uncork.impossible import IMPOSSIBILITIES
from uncork.measure import Measured, present
from uncork.measure.collectives import Collectives
from uncork.measure.facts import Facts, repairs_of
from uncork.measure.quality import RecordingQuality
from uncork.measure.second_sources import SecondSources
from uncork.measure.step_ledger import StepLedger
from uncork.quantiles import median

BLOCKING, WARNING, INFO = "blocking", "warning", "info"
SEVERITIES = (BLOCKING, WARNING, INFO)

MOSTLY_FIRST_USE_SHARE = 2 / 3
"""First uses over this share of the window leave too little to judge."""
FEW_RECORDS = 20
"""Fewer device records (or operators, without a device) are no workload …"""
BUSY_SHARE = 0.5
"""… unless the device is busy for most of the window."""
FEW_DEVICE_OPS = 5
"""Fewer operators of a device than this say nothing about where the others ran (a labelled trace has one)."""
ON_DEVICE_SHARE = 0.5
"""A job with more of its allocations than this on a device works there."""
FIRST_USE_TOLD_SHARE = 0.02
"""First uses of a fiftieth of the window are seen in its figures; they have left the shares already."""
FEW_LINKS_SHARE = 0.1
"""More device records without a launch than this make causes of idle time uncertain."""
LOST_SHARE = 0.02
"""Launches without a record: a few are lost to buffer ends; more is loss (labelled traces: 0.000 in all of them)."""
HOLLOW_SHARE = 0.05
"""The same of operators without the one they always call (labelled traces: up to 0.03; half dropped: 0.37–0.63)."""
MOSTLY_LOST_SHARE = 0.5
"""With more of the kernels, or of all events, lost than recorded, what was done is not known."""
SLOW_FIRST_STEP = 1.5
"""A first step this many times the median of the others is warm-up (labelled traces: 1.0–1.3 without, 2–30 with)."""
STALLED_SHARE = 0.05
"""Calls that stood still for more of the time than this are worth saying."""
OVERHEAD_SHARE = 0.05
"""The profiler's own work over this share of the window is worth saying."""
FOREIGN_SHARE = 0.5
"""More events than this of kinds that PyTorch does not write: another tool's trace."""
UNSURE_REPAIRS = frozenset({"cut_file", "checksum", "second_document", "header", "nanoseconds"})
"""Repairs after which an unknown part may be missing or wrong: people see that without asking …"""
LEFT_OUT = frozenset(
    {"lost_records", "negative_duration", "no_time", "not_a_number", "odd_events", "unfinished", "unpaired"}
    | {"unreadable_events"}
)
LEFT_OUT_SHARE = 0.01
"""… as where more of the events than this had to be left out (labelled traces: none)."""
SOURCES_APART_SHARE = 0.25
"""Shares of a busy device further apart are not of the same work; the driver's is of 1/6 to 1 s (nvmlUtilization_t)."""
OTHERS_BYTES = 4 << 30
"""Memory beyond the allocator's: a context takes about half a GiB, libraries and NCCL up to 2; more is somebody's."""
KNOWN_FORMATS = frozenset({"kineto", "legacy", "ascend", "run", "snapshot", "pstats", "memory-timeline"})
FEW_STEPS = 5
"""In fewer steps one pause beside them is no habit."""
BESIDE_SHARE = 0.1
"""More than a tenth of the time beside the steps is worth naming, as a class is that could give so much back."""
OBSERVER_RATIO = 1.1
"""Steps this much longer under the profiler than without it: the observer is part of what is seen."""
ONLY_LOADING = 0.95
"""A piece of a step that waits for its batch this much (labelled traces: up to 0.85) ends before it came."""

_LACKS = {
    "device-clock-apart": "clocks", "device-data-missing": "device", "lost-events": "complete", "no-lengths": "lengths",
    "step-cut": "whole_step",
}  # fmt: skip
"""What forbids a verdict → what is missing for every share of a step."""

Check = Callable[[RecordingQuality, Facts], Quality | None]


def gate(measured: Sequence[Measured], numbers: Sequence[int], earlier: int = 0) -> list[Quality]:
    """Return what limits conclusions, over all ranks, the worst first.

    Args:
        measured: The measurements of each rank.
        numbers: The rank each belongs to.
        earlier: Recordings of the same ranks that were left out.
    """
    per_rank = [list(_of_rank(one)) for one in measured]
    found = [_over_ranks(name, per_rank) for name in dict.fromkeys(one.id for rank in per_rank for one in rank)]
    found.extend(_of_job(measured, numbers))
    if min((one.share("data_loading") for one in present(measured, StepLedger)), default=0.0) > ONLY_LOADING:
        found = [replace(one, severity=BLOCKING) if one.id == "step-cut" else one for one in found]
    if earlier:
        found.append(Quality("earlier-recordings", WARNING, earlier / (earlier + len(measured)), {"earlier": earlier}))
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


def blocks(quality: Sequence[Quality]) -> Quality | None:
    """Return the first entry that forbids a verdict."""
    return next((one for one in quality if one.severity == BLOCKING), None)


def lacks(measured: Sequence[Measured], quality: Sequence[Quality]) -> str | None:
    """Return what recordings that carry no verdict lack, where shares of their steps mean nothing either."""
    forbidden = blocks(quality)
    if forbidden is None:
        return None
    if forbidden.id == "too-short":
        again = any(counts.marked and len(counts.step_ns) > 1 for counts in present(measured, RecordingQuality))
        return None if again else "longer"
    return _LACKS.get(forbidden.id)


def _of_rank(measured: Measured) -> Iterator[Quality]:
    counts, facts = measured.get(RecordingQuality), measured.get(Facts)
    if not isinstance(facts, Facts) or not isinstance(counts, RecordingQuality):
        return
    for check in _CHECKS:
        if (found := check(counts, facts)) is not None:
            yield found


def _over_ranks(name: str, per_rank: Sequence[Sequence[Quality]]) -> Quality:
    """Return one entry for all ranks: blocking only where at least half of them block."""
    entries = [one for rank in per_rank for one in rank if one.id == name]
    worst = min(entries, key=lambda one: SEVERITIES.index(one.severity))
    severity = worst.severity
    if severity == BLOCKING and 2 * sum(one.severity == BLOCKING for one in entries) < len(per_rank):
        severity = WARNING
    shares = [one.share_affected for one in entries if one.share_affected is not None]
    share = float(np.mean(shares)) if shares else None
    return Quality(name, severity, share, {**worst.params, "ranks": len(entries)})


def _of_job(measured: Sequence[Measured], numbers: Sequence[int]) -> Iterator[Quality]:
    facts = present(measured, Facts)
    world = max((fact.world_size or 0 for fact in facts), default=0)
    if world > len(numbers):
        missing = world - len(numbers)
        yield Quality("missing-ranks", WARNING, missing / world, {"missing": missing, "world_size": world})
    yield from _repaired(facts)
    talks = any(len(one.start_ns) for one in present(measured, Collectives))
    if talks and any(fact.rank is None for fact in facts):
        yield Quality("rank-unknown", WARNING, None, {"ranks": ", ".join(map(str, numbers))})
    yield from _stalls(present(measured, StepLedger))
    yield from _stalled_calls(present(measured, StepLedger))
    yield from crowding(measured)
    yield from _disagreements(present(measured, SecondSources))
    sources = [fact.source for fact in facts]
    if len(sources) > 1 and len(set(sources)) < len(sources):
        yield Quality("merged-ranks", INFO, 1.0, {"ranks": len(sources)})


def _disagreements(sources: Sequence[SecondSources]) -> Iterator[Quality]:
    """Yield where the driver's figures and the recording's are too far apart to be of the same work (R1.7)."""
    apart = [
        (abs(one.busy_share - one.recorded_busy_share), one.busy_share, one.recorded_busy_share)
        for one in sources
        if one.busy_share is not None and one.recorded_busy_share is not None
    ]
    if apart and max(apart)[0] > SOURCES_APART_SHARE:
        _, sampled, recorded = max(apart)
        yield Quality("sources-disagree", WARNING, None, {"busy_share": sampled, "recorded_busy_share": recorded})
    beyond = [
        (one.used_bytes - one.reserved_bytes, one.used_bytes, one.reserved_bytes)
        for one in sources
        if one.used_bytes is not None and one.reserved_bytes is not None
    ]
    if beyond and max(beyond)[0] > OTHERS_BYTES:
        others, used, reserved = max(beyond)
        params = {"others_bytes": others, "used_bytes": used, "reserved_bytes": reserved}
        yield Quality("memory-of-others", WARNING, None, params)


def _repaired(facts: Sequence[Facts]) -> Iterator[Quality]:
    """Yield what was mended in the files, and of what kinds."""
    repairs = repairs_of(facts)
    if not repairs:
        return
    left_out = sum(count for kind, count in repairs.items() if kind in LEFT_OUT)
    share = left_out / (left_out + sum(fact.events for fact in facts)) if left_out else 0.0
    severity = WARNING if repairs.keys() & UNSURE_REPAIRS or share > LEFT_OUT_SHARE else INFO
    severity = BLOCKING if share > MOSTLY_LOST_SHARE else severity
    what = {f"repair.{kind}": count for kind, count in repairs.items()}
    yield Quality("repaired-input", severity, share or None, {"repairs": repairs.total(), "what": what})


def _stalls(ledgers: Sequence[StepLedger]) -> Iterator[Quality]:
    """Yield that single steps are far longer than the others: the verdict is about the others."""
    worst = max(ledgers, key=lambda one: int(one.step_ns[one.stalled].sum()), default=None)
    if worst is None or not worst.stalled.any():
        return
    stalled = worst.stalled
    own = worst.own_ns  # by which they were told: a long wait for data may hide a stall
    extra_ns = int(own[stalled].sum()) - int(median(own[~stalled])) * int(stalled.sum())
    params = {"stalled": int(stalled.sum()), "steps": len(stalled), "extra_ns": extra_ns}
    yield Quality("stalled-steps", WARNING, extra_ns / int(worst.step_ns.sum()), params)


def _stalled_calls(ledgers: Sequence[StepLedger]) -> Iterator[Quality]:
    """Yield that single calls stood still for a visible part of the time: the machine did something else."""
    shares = [
        int(one.ns[one.causes.index("stall")].sum()) / int(one.step_ns.sum())
        for one in ledgers
        if "stall" in one.causes and one.step_ns.any()
    ]
    if shares and max(shares) > STALLED_SHARE:
        yield Quality("stalled-calls", WARNING, max(shares), {"stalled_share": max(shares)})


def _foreign(counts: RecordingQuality, facts: Facts) -> Quality | None:
    other = counts.other_events / counts.events if counts.events else 0.0
    if facts.format in KNOWN_FORMATS and (other <= FOREIGN_SHARE or counts.cpu_ops or counts.device_records):
        return None
    severity = WARNING if counts.device_records >= FEW_RECORDS else BLOCKING
    return Quality("foreign-format", severity, other, {"format": facts.format})


def _device_data_missing(counts: RecordingQuality, facts: Facts) -> Quality | None:
    """Return that device records are missing: launches prove it, operators that no CPU has, or allocations there."""
    if counts.device_records:
        return None
    copied = counts.device_listed and not counts.runtime_calls and counts.to_device_ops and not counts.cpu_only_ops
    on_device = counts.device_only_ops >= FEW_DEVICE_OPS and not counts.cpu_only_ops
    allocated = counts.device_allocations_share > ON_DEVICE_SHARE
    if counts.launches or on_device or copied or allocated:
        params = {"launches": counts.launches, "device": facts.devices[0].name if facts.devices else "?"}
        return Quality("device-data-missing", BLOCKING, 1.0, params)
    return None


def _too_short(counts: RecordingQuality, _: Facts) -> Quality | None:
    if counts.first_use_share > MOSTLY_FIRST_USE_SHARE:
        return Quality("too-short", BLOCKING, counts.first_use_share, {"why": {"too_short.first_use": 1}})
    if counts.device_records:
        few = not counts.marked and counts.device_records < FEW_RECORDS and counts.busy_share <= BUSY_SHARE
    else:
        few = counts.cpu_ops < FEW_RECORDS
    if few:
        work = counts.device_records or counts.cpu_ops
        return Quality("too-short", BLOCKING, 1.0, {"why": {"too_short.work": work}})
    if counts.marked and len(counts.step_ns) < 2:
        return Quality("too-short", WARNING, 1.0, {"why": {"too_short.steps": len(counts.step_ns)}})
    if counts.first_use_share > FIRST_USE_TOLD_SHARE:
        return Quality("warm-up-included", WARNING, counts.first_use_share, {"steps": 1})
    return None


def _warm_up(counts: RecordingQuality, _: Facts) -> Quality | None:
    """Return that the first steps are longer than the others, left out or not (pitfall 1)."""
    steps = np.append(counts.warm_up_ns, counts.step_ns)
    if len(steps) < 3:
        return None
    slow = len(counts.warm_up_ns) or int(steps[0] > SLOW_FIRST_STEP * median(steps[1:]))
    if not slow:
        return None
    severity = INFO if counts.warm_up_ns else WARNING
    return Quality("warm-up-included", severity, float(steps[:slow].sum() / steps.sum()), {"steps": slow})


def _blind_steps(counts: RecordingQuality, _: Facts) -> Quality | None:
    if not counts.blind_ns:
        return None
    left_out = sum(counts.blind_ns)
    params = {"steps": len(counts.blind_ns)}
    return Quality("first-steps-lost", WARNING, left_out / (left_out + int(counts.step_ns.sum())), params)


def _no_steps(counts: RecordingQuality, facts: Facts) -> Quality | None:
    if counts.marked:
        return None
    cut = facts.run is not None and "window-cut" in facts.run.notes
    return Quality("step-cut" if cut else "no-steps", WARNING, 1.0)


def _host_failed(_: RecordingQuality, facts: Facts) -> Quality | None:
    failed = facts.run is not None and "host-memory-failed" in facts.run.notes
    return Quality("host-memory-failed", WARNING, None) if failed else None


def _no_cpu_ops(counts: RecordingQuality, _: Facts) -> Quality | None:
    if counts.cpu_ops:
        return None
    return Quality("no-cpu-ops", WARNING if counts.device_records else BLOCKING, 1.0)


def _no_links(counts: RecordingQuality, _: Facts) -> Quality | None:
    if counts.unlinked_share <= FEW_LINKS_SHARE:
        return None
    share = counts.unlinked_share
    return Quality("no-launch-links", WARNING, share, {"before_window": counts.before_window, "unlinked_share": share})


def _lost(counts: RecordingQuality, _: Facts) -> Quality | None:
    launches = max(counts.lost_share, counts.lost_kernels_share)
    share = max(launches, counts.hollow_share)
    if launches <= LOST_SHARE and counts.hollow_share <= HOLLOW_SHARE:
        return None
    severity = BLOCKING if counts.lost_kernels_share > MOSTLY_LOST_SHARE else WARNING
    return Quality("lost-events", severity, share, {"lost_share": share})


def _between_steps(_: RecordingQuality, facts: Facts) -> Quality | None:
    """Return that much of the time passes beside the steps, where nothing was recorded."""
    told = facts.run.between if facts.run else None
    if told is None or told.steps < FEW_STEPS:
        return None
    share = told.between_ns / max(told.between_ns + told.steps_ns, 1)
    if share < BESIDE_SHARE:
        return None
    return Quality("between-steps", WARNING, share, {"beside_share": share, "steps": told.steps})


def _graph_replay(counts: RecordingQuality, _: Facts) -> Quality | None:
    if not counts.graph_launches:
        return None
    params = {"launches": counts.graph_launches, "kernels": counts.graph_kernels}
    return Quality("graph-replay", INFO, counts.graph_kernels / max(counts.device_records, 1), params)


def _marks_end_early(counts: RecordingQuality, _: Facts) -> Quality | None:
    if not counts.marked or counts.ends_early_share <= 0.02:
        return None
    return Quality("step-marks-end-before-device-work", INFO, counts.ends_early_share)


def _observer(counts: RecordingQuality, facts: Facts) -> Quality | None:
    windows = facts.run.windows if facts.run else ()
    medians = {one.name: median(one.step_ns) for one in windows if one.step_ns}
    quiet_ns = medians.get(facts.run.quiet_window) if facts.run else None
    others = next((one.step_ns for one in windows if one.name == "unwatched"), ())
    if len(others) >= ENOUGH_OTHERS and medians.get("light", 0) > UNLIKE_RATIO * median(others):
        quiet_ns = median(others)  # the baseline, beside the recorded steps, fell into the same bad moment
    if quiet_ns and "light" in medians:
        ratio = medians["light"] / quiet_ns
        if ratio > OBSERVER_RATIO:
            return Quality("observer-overhead", WARNING, 1 - 1 / ratio, {"times_longer": ratio})
    if counts.overhead_share > OVERHEAD_SHARE:
        return Quality("observer-overhead", WARNING, counts.overhead_share)
    return None


def _unlike(_: RecordingQuality, facts: Facts) -> Quality | None:
    """Return that the steps outside all windows are far longer than the recorded ones."""
    took = {one.name: one.step_ns for one in facts.run.windows} if facts.run else {}
    others, recorded_ns = took.get("unwatched", ()), int(median(took.get("light") or (0,)))
    if len(others) < ENOUGH_OTHERS or not 0 < UNLIKE_RATIO * recorded_ns < (others_ns := int(median(others))):
        return None
    params = {"others": len(others), "others_ns": others_ns, "recorded_ns": recorded_ns, "skip": len(others) // 2}
    return Quality("unlike-others", WARNING, 1 - recorded_ns / others_ns, params)


def _names_lost(counts: RecordingQuality, _: Facts) -> Quality | None:
    return Quality("names-lost", WARNING, None, {"names": counts.lost_names}) if counts.lost_names else None


def _absent(name: str, has: Callable[[RecordingQuality], bool]) -> Check:
    return lambda counts, _: None if has(counts) else Quality(name, INFO, 1.0)


_CHECKS: tuple[Check, ...] = (
    _host_failed,
    _foreign,
    _device_data_missing,
    _no_cpu_ops,
    _too_short,
    _warm_up,
    _no_steps,
    _no_links,
    _lost,
    _blind_steps,
    *IMPOSSIBILITIES,
    _observer,
    _unlike,
    _between_steps,
    _graph_replay,
    _marks_end_early,
    _names_lost,
    _absent("no-stacks", lambda counts: counts.has_stacks),
    _absent("no-shapes", lambda counts: counts.has_shapes),
    _absent("no-memory", lambda counts: counts.has_memory),
    _absent("no-modules", lambda counts: counts.has_modules),
)
