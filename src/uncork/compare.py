"""Compare: what changed between two Reports."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from uncork.findings import Bottleneck, Finding, Message
from uncork.locale import say
from uncork.recording import RunFolder, quiet_window
from uncork.records import dataclass
from uncork.report import Report, finding_texts, loads
from uncork.same_findings import by_place, under_old_keys

MANY_UNWATCHED = 20
"""As many steps as the longest window without a profiler holds: with fewer its steps, one after another, say more."""
# A saved report is read whole; larger files are recordings.
_MOST_REPORT_BYTES = 64_000_000
# Standard errors that a change must exceed: two are about 95 % for normal noise.
_ERRORS = 2
# Chance of more than this part of the longer step comes of steps too uneven for a normal spread to describe.
_UNEVEN_SHARE = 0.5
# An operator that moved by less than this share of the step is left out.
_SMALL_CHANGE_SHARE = 0.001


@dataclass(frozen=True)
class Change:
    """One figure before and after, per step.

    Args:
        name: What it is: a cause, an operator.
        before_ns: Before.
        after_ns: After.
    """

    name: str
    before_ns: int
    after_ns: int

    @property
    def difference_ns(self) -> int:
        """Return after minus before."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True)
class Scaling:
    """What more ranks brought: one job on few and on many (requirement R3.4).

    Args:
        few: Ranks on the side with fewer.
        many: Ranks on the side with more.
        throughput_ratio: Items per second with many over those with few; below 1 it is slower with more.
        batch_known: Both recordings tell the batch of a rank; else each rank's is taken to have stayed the same.
    """

    few: int
    many: int
    throughput_ratio: float
    batch_known: bool

    @property
    def efficiency_share(self) -> float:
        """Return what was reached of the throughput that so many ranks could have at best."""
        return self.throughput_ratio * self.few / self.many

    @property
    def sentences(self) -> tuple[Message, ...]:
        """Return it in words, with what was assumed."""
        params: dict[str, object] = {
            "few": self.few,
            "many": self.many,
            "ratio": self.throughput_ratio,
            "efficiency_share": self.efficiency_share,
        }
        said = Message("compare.scaling" if self.throughput_ratio >= 1 else "compare.scaling.slower", params)
        return (said,) if self.batch_known else (said, Message("compare.scaling.assumed"))


@dataclass(frozen=True)
class Comparison:
    """What changed from one report to another.

    Args:
        step: Step time.
        noise_share: How far the two medians may lie apart by chance (two standard errors, as a share of before);
            None where a side has fewer than four steps.
        measured_without_profiler: Both step times come from steps no profiler watched.
        watched: The step that ledger and operators describe, where it moved otherwise than the step time.
        beside_share: Share of the time that passed between the steps before and after; None if small or unknown.
        others_share: Share of the cores that other programs took before and after; None if small or unknown.
        queued_share: Share of a step in which they kept its thread from a core before and after; likewise.
        peak_bytes: Memory at the peak before and after, None where it is not known.
        scaling: What more ranks brought, where only their number differs and step times are known.
        unlike: What differs beside the change (``device processor program ranks``), before and after.
        verdict: Bottleneck before and after.
        busy_share: Device (or operator) busy share before and after, None where unknown.
        ledger: Causes, largest change first.
        operators: Operators by self time on the device (else the CPU), largest change first.
        gone: Findings only before.
        new: Findings only after.
        kept: Findings on both sides, each as it was and as it is.
    """

    step: Change
    noise_share: float | None
    measured_without_profiler: bool
    watched: Change | None
    beside_share: tuple[float | None, float | None]
    others_share: tuple[float | None, float | None]
    queued_share: tuple[float | None, float | None]
    peak_bytes: tuple[int | None, int | None]
    scaling: Scaling | None
    unlike: tuple[tuple[str, str, str], ...]
    verdict: tuple[Bottleneck, Bottleneck]
    busy_share: tuple[float | None, float | None]
    ledger: tuple[Change, ...]
    operators: tuple[Change, ...]
    gone: tuple[Finding, ...]
    new: tuple[Finding, ...]
    kept: tuple[tuple[Finding, Finding], ...]

    @property
    def step_change_share(self) -> float | None:
        """Return the change of the step time as a share of before; None where there is no step time."""
        return self.step.difference_ns / self.step.before_ns if self.step.before_ns and self.step.after_ns else None

    @property
    def noise_ns(self) -> int:
        """Return how far the two medians may lie apart by chance; 0 where it is not known."""
        return round((self.noise_share or 0.0) * self.step.before_ns)

    @property
    def is_uneven(self) -> bool:
        """Return whether the steps of a side are too uneven for a ratio to measure the change."""
        return self.noise_ns > _UNEVEN_SHARE * max(self.step.before_ns, self.step.after_ns)

    @property
    def sentence(self) -> Message:
        """Return the outcome in one sentence."""
        change = self.step_change_share
        if change is None:
            return Message("compare.unknown")
        params = {
            "before_ns": self.step.before_ns,
            "after_ns": self.step.after_ns,
            "change_share": abs(change),
            "ratio": max(self.step.before_ns, self.step.after_ns) / min(self.step.before_ns, self.step.after_ns),
        }
        if self.step.before_ns == self.step.after_ns:
            return Message("compare.same", params)
        if self.noise_share is not None and abs(change) <= self.noise_share:
            noise = {"noise_share": self.noise_share, "noise_ns": self.noise_ns}
            return Message("compare.noise.uneven" if self.is_uneven else "compare.noise", params | noise)
        return Message("compare.faster" if change < 0 else "compare.slower", params)

    def gate(self, limit_share: float) -> Message:
        """Return whether the steps got slower by more than allowed; what chance explains fails nothing."""
        change = self.step_change_share
        if change is None:
            return Message("compare.gate.unknown")
        params: dict[str, object] = {"change_share": change, "limit_share": limit_share}
        if change <= limit_share:
            return Message("compare.gate.passed", params)
        if self.noise_share is not None and abs(change) <= self.noise_share:
            return Message("compare.gate.noise", params | {"noise_share": self.noise_share})
        return Message("compare.gate.failed", params)


def load(path: Path) -> Report:
    """Return the report of a path: a saved JSON report, a run folder's, or a recording analysed now.

    Raises:
        UncorkError: The path is missing or nothing uncork reads.
    """
    saved = path / RunFolder.REPORT_JSON if path.is_dir() else path
    if saved.is_file() and saved.suffix == ".json" and saved.stat().st_size <= _MOST_REPORT_BYTES:
        head = saved.read_bytes()[:4096]
        if b'"schema"' in head and b'"verdict"' in head:
            return loads(saved.read_bytes(), saved)
    from uncork.pipeline import analyze

    return analyze([path])


def compare(before: Report, after: Report) -> Comparison:
    """Return what changed; comparing a report with itself changes nothing."""
    quiet = _quiet_steps(before), _quiet_steps(after)
    bare = None not in quiet
    was_step, now_step = quiet if bare else (_recorded_steps(before), _recorded_steps(after))
    step = Change("step", was_step.median_ns, now_step.median_ns) if was_step and now_step else Change("step", 0, 0)
    was, now = (by_place(one.findings, _job(one.run)["program"]) for one in (before, after))
    now = under_old_keys(was, now)
    unlike = _unlike(before, after)
    return Comparison(
        step=step,
        noise_share=_noise_share(was_step, now_step),
        measured_without_profiler=bare,
        watched=_watched(before, after, step, _noise_share(was_step, now_step)) if bare else None,
        beside_share=(_affected(before, "between-steps"), _affected(after, "between-steps")),
        others_share=(_affected(before, "machine-busy"), _affected(after, "machine-busy")),
        queued_share=(_queued_share(before), _queued_share(after)),
        peak_bytes=((before.memory or {}).get("peak_bytes"), (after.memory or {}).get("peak_bytes")),
        scaling=_scaling(before.run, after.run, step) if {what for what, *_ in unlike} == {"ranks"} else None,
        unlike=unlike,
        verdict=(before.verdict.bottleneck, after.verdict.bottleneck),
        busy_share=(before.run.get("busy_share"), after.run.get("busy_share")),
        ledger=_changes(
            {entry.cause: entry.ns_per_step for entry in before.ledger},
            {entry.cause: entry.ns_per_step for entry in after.ledger},
            0,
        ),
        operators=_changes(
            _operators(before), _operators(after), _SMALL_CHANGE_SHARE * (was_step.median_ns if was_step else 0)
        ),
        gone=tuple(finding for key, finding in was.items() if key not in now),
        new=tuple(finding for key, finding in now.items() if key not in was),
        kept=tuple((was[key], finding) for key, finding in now.items() if key in was),
    )


def _watched(before: Report, after: Report, step: Change, noise_share: float | None) -> Change | None:
    """Return the recorded step where it moved the other way than the one without a profiler, or not as far.

    As far is what chance allows for the four medians together.
    """
    watched = Change("step", before.run.get("step_ns") or 0, after.run.get("step_ns") or 0)
    if not watched.before_ns or not watched.after_ns:
        return None
    recorded_noise = _noise_share(_recorded_steps(before), _recorded_steps(after))
    chance = math.hypot(noise_share or 0, recorded_noise or 0)
    apart = abs(watched.difference_ns / watched.before_ns - step.difference_ns / step.before_ns)
    return watched if watched.difference_ns * step.difference_ns < 0 or apart > chance else None


def _affected(report: Report, issue: str) -> float | None:
    """Return the share that a limit of the recording affects, None where nothing was told of it."""
    return next((one.share_affected for one in report.quality if one.id == issue), None)


def _queued_share(report: Report) -> float | None:
    """Return the share of a step in which its thread had no core since others had them, None where it is small."""
    told = next((one for one in report.quality if one.id == "waited-for-core" and one.severity == "warning"), None)
    if told is None or told.share_affected is None:
        return None
    others = told.params.get("others_share")
    return told.share_affected * others if isinstance(others, float) else None


def _scaling(before: Mapping[str, Any], after: Mapping[str, Any], step: Change) -> Scaling | None:
    """Return what more ranks brought; None where both sides have as many, or a step time is not known."""
    was, now = (max(len(run.get("ranks") or ()), run.get("world_size") or 0) for run in (before, after))
    if not was or not now or was == now or not step.before_ns or not step.after_ns:
        return None
    batches = [(run.get("settings") or {}).get("batch_size") or 0 for run in (before, after)]
    known = all(batches)
    growth = batches[1] / batches[0] if known else 1.0
    ratio = now / was * growth * step.before_ns / step.after_ns
    return Scaling(min(was, now), max(was, now), ratio if now > was else 1 / ratio, known)


def _unlike(before: Report, after: Report) -> tuple[tuple[str, str, str], ...]:
    """Return what two runs differ in that makes them two jobs rather than one job changed; unknown is no difference."""
    was, now = _job(before.run), _job(after.run)
    if _model(before.run) == _model(after.run) != ("", None):
        was["program"] = now["program"] = ""  # another version of the script, under a name of its own
    return tuple((what, was[what], now[what]) for what in was if was[what] and now[what] and was[what] != now[what])


def _model(run: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return class and number of parameters of the model, ("", None) where the recorder did not see one."""
    settings = run.get("settings") or {}
    return str(settings.get("model") or ""), settings.get("parameters")


def _job(run: Mapping[str, Any]) -> dict[str, str]:
    names = [str(one.get("name") or "") for one in run.get("devices", ())]
    words = [str(word) for word in run.get("command", ())]
    program = next((word for word in words if word != "-m"), "")
    return {
        "device": "CPU" if run.get("on_device") is False else names[0] if names and run.get("on_device") else "",
        "processor": str(run.get("host", {}).get("cpu") or ""),
        "program": program.replace("\\", "/").rpartition("/")[2],
        "ranks": str(len(run.get("ranks", ()))),
    }


@dataclass(frozen=True)
class _Steps:
    """Step times of one side: their median, and the standard error of that median in ns, None if unknown."""

    median_ns: int
    error_ns: float | None

    @classmethod
    def of(cls, figures: Mapping[str, Any]) -> "_Steps | None":
        """Return the steps that a run or one of its windows describes, None where it has none.

        The standard error of a median is 1.2533 σ / √n, and for a normal spread σ is the distance between the
        quartiles / 1.349; quartiles, since a shared machine makes a few steps very slow.
        """
        median, spread, count = figures.get("median_step_ns"), figures.get("spread_share"), figures.get("steps")
        if not median:
            return None
        error = None if spread is None or not count else 1.2533 * spread * median / 1.349 / math.sqrt(count)
        return cls(int(median), error)


def quiet_steps(run: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a report's run says of the steps that no profiler watched, None where there are none.

    All those outside the windows where they are many; else a window's, a few at best.
    """
    windows: dict[str, Mapping[str, Any]] = {window["name"]: window for window in run.get("windows") or ()}
    outside = windows.pop("unwatched", None)
    if outside and outside["steps"] >= MANY_UNWATCHED:
        return outside
    return windows.get(quiet_window({name: window["steps"] for name, window in windows.items()}))


def _quiet_steps(report: Report) -> _Steps | None:
    """Return the steps of the recorder's window without a profiler, or None."""
    window = quiet_steps(report.run)
    return _Steps.of(window) if window else None


def _recorded_steps(report: Report) -> _Steps | None:
    return _Steps.of({**report.run, "spread_share": report.run.get("step_spread_share")})


def _noise_share(before: _Steps | None, after: _Steps | None) -> float | None:
    if before is None or after is None or before.error_ns is None or after.error_ns is None:
        return None
    return _ERRORS * math.hypot(before.error_ns, after.error_ns) / before.median_ns


def _operators(report: Report) -> dict[str, int]:
    """Return self time per step by operator name, on the device where it was recorded."""
    rows = [row for row in report.tables.get("operators", ()) if row.get("rank", 0) == 0]
    column = "device_self_ns" if any(row.get("device_self_ns") for row in rows) else "cpu_self_ns"
    found: dict[str, int] = {}
    for row in rows:
        found[row["name"]] = found.get(row["name"], 0) + int(row.get(column) or 0)
    return found


def _changes(before: Mapping[str, int], after: Mapping[str, int], least_ns: float) -> tuple[Change, ...]:
    changes = [Change(name, before.get(name, 0), after.get(name, 0)) for name in dict.fromkeys([*before, *after])]
    changes = [one for one in changes if abs(one.difference_ns) > least_ns]
    return tuple(sorted(changes, key=lambda one: (-abs(one.difference_ns), one.name)))


def to_json(comparison: Comparison, lang: str) -> dict[str, Any]:
    """Return a comparison as plain values, its texts in one language."""

    def told(one: Finding) -> dict[str, Any]:
        return {
            "rule": one.rule, "title": finding_texts(one, lang)["title"], "location": asdict(one.location),
            "share": one.share, "cost_ns_per_step": one.cost_ns_per_step,
        }  # fmt: skip

    return {
        "schema": 1,
        "summary": say(lang, comparison.sentence.id, comparison.sentence.params),
        "step": {**asdict(comparison.step), "change_share": comparison.step_change_share},
        "noise_share": comparison.noise_share,
        "measured_without_profiler": comparison.measured_without_profiler,
        "recorded_step": comparison.watched and asdict(comparison.watched),
        "beside_share": {"before": comparison.beside_share[0], "after": comparison.beside_share[1]},
        "others_share": {"before": comparison.others_share[0], "after": comparison.others_share[1]},
        "queued_share": {"before": comparison.queued_share[0], "after": comparison.queued_share[1]},
        "peak_bytes": {"before": comparison.peak_bytes[0], "after": comparison.peak_bytes[1]},
        "scaling": comparison.scaling
        and {**asdict(comparison.scaling), "efficiency_share": comparison.scaling.efficiency_share},
        "unlike": [dict(zip(("what", "before", "after"), one, strict=True)) for one in comparison.unlike],
        "verdict": {"before": comparison.verdict[0].value, "after": comparison.verdict[1].value},
        "busy_share": {"before": comparison.busy_share[0], "after": comparison.busy_share[1]},
        "ledger": [asdict(change) for change in comparison.ledger],
        "operators": [asdict(change) for change in comparison.operators],
        "findings": {
            "gone": [told(one) for one in comparison.gone],
            "new": [told(one) for one in comparison.new],
            "kept": [
                {**told(now), "before": {"share": was.share, "cost_ns_per_step": was.cost_ns_per_step}}
                for was, now in comparison.kept
            ],
        },
    }


def dumps(comparison: Comparison, lang: str) -> str:
    """Return a comparison as JSON text."""
    return json.dumps(to_json(comparison, lang), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
