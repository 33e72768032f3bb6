"""The verdict: the class with most time to win back; or an honest abstention.

The ledger decides, over ranks together with who waited for whom; quality may forbid. Findings only speak where a
recording holds no timeline.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from uncork.classes import CONTRIBUTES_SHARE, Shares, by_roofline, class_shares, excess_of
from uncork.findings import CLASSES, Bottleneck, Finding, Message, Quality, Verdict
from uncork.measure import Measured, Missing, Ranks, present
from uncork.measure.collectives import Collectives
from uncork.measure.core_waits import CoreWaits
from uncork.measure.device_roofline import DeviceRoofline
from uncork.measure.loader_stages import LoaderStages
from uncork.measure.matching import match
from uncork.measure.step_ledger import StepLedger, typical
from uncork.measure.waiting import Lateness, lateness
from uncork.quality import blocks
from uncork.quantiles import median
from uncork.records import dataclass
from uncork.wording import late_key, summary, wrong_if

FloatArray = npt.NDArray[np.float64]

WORTH_SHARE = 0.05
"""Less to win back than this share of the step is no bottleneck."""
LEAST_SURE = 0.42
"""Less sure than this is no answer: two in five is what a class has by the toss of a coin against the next (labelled
traces: right ones from 0.48; damaged ones that were wrong for want of links or matching ranks: 0.37–0.40)."""
WELL_BUSY = 0.9
ROOFLINE_KNOWN = 0.8
ROOFLINE_ATTAINED = 0.7
"""A device that is busy this much, for most of it in operators whose least time is known, at this share of that least
time: the best libraries reach 0.7 to 0.9 of a vendor's figure (docs/roofline.md), so nothing is left to win."""
KNOWN_SHARE = 0.5
"""With more of the window unexplained or unrecorded, a verdict needs `OF_EXPLAINED` and `OF_WINDOW`."""
OF_EXPLAINED = 0.9
OF_WINDOW = 0.25
SKEW_UNKNOWN = 0.85
"""Communication as seen by some ranks only may be waiting for one that is not here; so may waiting without a reason."""
CLOSE_PAIR = 0.9
"""Which of arithmetic and memory-bound kernels leads, when they are close, depends on where some are counted."""

UNNAMED = 0.3
"""Kernels of unknown names may be either of the two."""
BUSY_PAIR = frozenset({Bottleneck.COMPUTE, Bottleneck.MEMORY})

WAITING_CLASSES = (Bottleneck.DATA_LOADING, Bottleneck.COMMUNICATION)
"""Classes of time in which the host waits; in the others, on a CPU, its thread means to run."""
IDLE_CLASSES = frozenset({Bottleneck.DATA_LOADING, Bottleneck.FRAMEWORK})
"""Classes of time in which nothing seems to work: lost records make them larger than they are."""

CROWDED = 0.8
"""On the CPU itself, operators of a crowded machine wait for their threads' turn, and small ones look like work. As
much again where the loader's workers are in that crowd: what operators seem to take may be what the workers do. Where
they are counted as taking cores, they take caches and halves of cores, too: CPU time is longer by a tenth and more."""
WORKERS_BUSY = 0.5
"""Workers that make batches half of their time take part in it."""
UNLINKED = 0.25
"""Where no device work has its launch, waiting for the device and first uses look like dispatching."""

UNDISTURBED = 1.5
"""Up to this many times as long as unobserved, recorded steps are taken as they are; beyond, confidence falls."""
DISTORTED = 3.0
"""Recorded steps this many times as long as unobserved ones hold mostly something else than the job's own steps. Only
overhead per operator grows under a profiler by its nature, so that class stands."""


@dataclass(frozen=True, eq=False)
class Job:
    """What the verdict is made from.

    Args:
        ledgers: Of the ranks that have one.
        numbers: Their ranks.
        late: Who waited for whom.
        shares: What each class could give back, of the step.
        per_step: The same in each step, mean over ranks, float64 (classes, steps).
        unknown: Share of the step that nothing explains.
        close_pair: Whether compute and memory share the busy time of some rank too evenly to leave one out.
        unnamed: Share of the kernels' time in kernels whose names do not say what they do.
        excess: Class on which the late ranks spend more time than the others; None where that is unexplained.
        workers: Whether the loader's workers are busy beside the steps.
        crowded: Share of the step in which a thread that means to run stood in the queue behind other programs.
    """

    ledgers: tuple[StepLedger, ...]
    numbers: tuple[int, ...]
    late: Lateness | None
    shares: Mapping[Bottleneck, float]
    per_step: FloatArray
    unknown: float
    close_pair: bool
    unnamed: float
    excess: Bottleneck | None
    workers: bool
    crowded: float = 0.0


def judge(
    measured: Sequence[Measured], numbers: Sequence[int], findings: Sequence[Finding], quality: Sequence[Quality]
) -> Verdict:
    """Return the verdict on a job.

    Args:
        measured: The measurements of each rank.
        numbers: The rank each belongs to.
        findings: What the rules found.
        quality: What limits conclusions.
    """
    stopped = [one for one in findings if one.params.get("stopped")]
    job = None if stopped else _job(measured, numbers)  # a program that cannot go on has no slower part
    if job is None:
        return _from_findings(measured, stopped or findings, () if stopped else quality)
    late = job.late.ranks if job.late else ()
    forbidden = blocks(quality)
    if forbidden is not None:
        return _abstain(f"verdict.undetermined.{forbidden.id}", forbidden.params, late)
    main = max(CLASSES, key=lambda one: job.shares[one])
    share = job.shares[main]
    doubt = _doubt(job, main, quality)
    if doubt is not None:
        return _abstain(doubt.id, doubt.params, late)
    if share < WORTH_SHARE or (main is Bottleneck.COMPUTE and _well_used(measured, job, findings)):
        nothing = Message("verdict.none", {"share": share})
        return Verdict(Bottleneck.NONE, _confidence(job, share, quality), share, nothing)
    sure = _confidence(job, share, quality)
    if sure < LEAST_SURE:
        return _abstain("verdict.undetermined.unsure", {"sure_share": sure, "share": share}, late)
    return Verdict(
        bottleneck=main,
        confidence=sure,
        share=share,
        summary=summary(
            job.ledgers, main, late if main is job.excess else (), job.late.wait_share if job.late else 0.0
        ),
        contributing=_contributing(job, main),
        late_ranks=tuple(sorted(late)),
        would_be_wrong_if=wrong_if(main, quality, late),
    )


def _doubt(job: Job, main: Bottleneck, quality: Sequence[Quality]) -> Message | None:
    """Return why the ledger's largest class is no answer, or None."""
    late = job.late
    if late and late.ranks and job.excess is None and late.wait_share > job.shares[main]:
        params = {"ranks": _spelt(late.ranks), "wait_share": late.wait_share}
        return Message(f"verdict.undetermined.{late_key(late.ranks)}", params)
    if job.unknown > KNOWN_SHARE and not _stands_alone(job, main):
        waits = sum(one.share("unrecorded") - one.share("unexplained") for one in job.ledgers) > 0
        kind = "waiting" if waits else "unexplained"
        return Message(f"verdict.undetermined.{kind}", {"unknown_share": job.unknown})
    lost = max((one.share_affected or 0.0 for one in quality if one.id == "lost-events"), default=0.0)
    if (
        lost
        and main in IDLE_CLASSES
        and job.shares[main] - _hidden(job, lost) <= max(job.shares[one] for one in CLASSES if one is not main)
    ):
        return Message("verdict.undetermined.lost-events", {"lost_share": lost})
    if main not in WAITING_CLASSES and _own(job, main) <= max(job.shares[one] for one in WAITING_CLASSES):
        return Message("verdict.undetermined.crowded", {"crowded_share": job.crowded})
    longer = _times_longer(quality)
    if longer > DISTORTED and main is not Bottleneck.FRAMEWORK:
        return Message("verdict.undetermined.distorted", {"times_longer": f"{longer:.1f}"})
    return None


def _own(job: Job, main: Bottleneck) -> float:
    """Return what a class of the host's work could give back without its part of the wait for others' cores."""
    work = sum(share for one, share in job.shares.items() if one not in WAITING_CLASSES)
    return job.shares[main] * (1 - min(job.crowded / work, 1.0)) if job.crowded else np.inf


def _hidden(job: Job, lost: float) -> float:
    """Return what share of the step lost records would fill if they were as long as those that were kept."""
    busy = median([one.busy_share for one in job.ledgers])
    return busy * lost / max(1 - lost, 1e-9)


def _times_longer(quality: Sequence[Quality]) -> float:
    """Return how many times as long the recorded steps are as those without a profiler; 1 where that is not known."""
    told = [one.params.get("times_longer") for one in quality if one.id == "observer-overhead"]
    return max((float(one) for one in told if isinstance(one, float)), default=1.0)


def _well_used(measured: Sequence[Measured], job: Job, findings: Sequence[Finding]) -> bool:
    """Return whether busy devices compute near their roofline, and no rule knows what would help."""
    known = present(measured, DeviceRoofline)
    busy = min(one.busy_share for one in job.ledgers)
    near = all(one.known_share >= ROOFLINE_KNOWN and one.attained_share >= ROOFLINE_ATTAINED for one in known)
    helped = any(one.bottleneck in CLASSES and one.gain.high >= WORTH_SHARE for one in findings)
    return len(known) == len(measured) and near and busy >= WELL_BUSY and not helped


def _job(measured: Sequence[Measured], numbers: Sequence[int]) -> Job | None:
    """Return the job's figures, or None where no rank has a ledger with time in it."""
    places = [
        place
        for place, one in enumerate(measured)
        if isinstance(ledger := one.get(StepLedger), StepLedger) and ledger.mean_step_ns > 0
    ]
    if not places:
        return None
    bound = [
        one.memory_bound_share if isinstance(one := measured[place].get(DeviceRoofline), DeviceRoofline) else 0.0
        for place in places
    ]
    steady = typical(present([measured[place] for place in places], StepLedger))
    ledgers = tuple(by_roofline(ledger, share) for ledger, share in zip(steady, bound, strict=True))
    late = _lateness(measured, places, numbers, ledgers)
    per_rank = [class_shares(ledger) for ledger in ledgers]
    shares = {one: median([rank.mean[one] for rank in per_rank]) for one in CLASSES}
    excess = None
    if late is not None and late.ranks:
        here = [numbers[place] for place in places]
        excess = excess_of(ledgers, [here.index(rank) for rank in late.ranks], late.wait_share)
        if excess is not None:
            shares[excess] = min(shares[excess] + late.wait_share, 1.0)
    return Job(
        ledgers=ledgers,
        numbers=tuple(numbers[place] for place in places),
        late=late,
        shares=shares,
        per_step=_agreement(per_rank),
        unknown=median([rank.unknown for rank in per_rank]),
        close_pair=any(rank.close_pair for rank in per_rank),
        unnamed=median([rank.unnamed for rank in per_rank]),
        excess=excess,
        crowded=max((one.crowded_share for one in present(measured, CoreWaits)), default=0.0),
        workers=any(one.workers and one.busiest_share > WORKERS_BUSY for one in present(measured, LoaderStages)),
    )


def _lateness(
    measured: Sequence[Measured], places: Sequence[int], numbers: Sequence[int], ledgers: Sequence[StepLedger]
) -> Lateness | None:
    """Return who waited for whom; None where fewer than two ranks have collectives."""
    collectives = [
        (numbers[place], one) for place in places if isinstance(one := measured[place].get(Collectives), Collectives)
    ]
    if len(collectives) < 2:
        return None
    here = [number for number, _ in collectives]
    step_ns = float(np.mean([ledger.waited_for_ns for ledger in ledgers]))
    return lateness(match(Ranks([one for _, one in collectives], here)), here, step_ns)


def _agreement(per_rank: Sequence[Shares]) -> FloatArray:
    """Return what each class could give back in each step, mean over ranks, float64 (classes, steps)."""
    steps = min(rank.steps.shape[1] for rank in per_rank)
    mean: FloatArray = np.mean([rank.steps[:, :steps] for rank in per_rank], axis=0)
    return mean


def _stands_alone(job: Job, main: Bottleneck) -> bool:
    """Return whether one class holds nearly all that is explained, and enough of the window."""
    explained = sum(job.shares.values())
    return job.shares[main] >= OF_EXPLAINED * explained and job.shares[main] >= OF_WINDOW


def _contributing(job: Job, main: Bottleneck) -> tuple[Bottleneck, ...]:
    """Return the other classes that are worth naming, the largest first."""
    close = job.close_pair and main in BUSY_PAIR
    named = [
        one
        for one in CLASSES
        if one is not main and (job.shares[one] >= CONTRIBUTES_SHARE or (close and one in BUSY_PAIR))
    ]
    return tuple(sorted(named, key=lambda one: -job.shares[one]))


def _confidence(job: Job, share: float, quality: Sequence[Quality]) -> float:
    """Return how sure a verdict is: margin to the next class, agreement of the steps, and what limits the recording.

    Calibrated on the labelled traces (`bench/accuracy`): of the verdicts at 0.8 or more, at least 95 in 100 are right.
    """
    ranked = sorted(job.shares.values(), reverse=True)
    margin = (ranked[0] - ranked[1]) / max(ranked[0], 1e-9)
    sure = 0.55 + 0.3 * min(1.0, margin / 0.5) + 0.12 * min(1.0, share / 0.4)
    top = CLASSES.index(max(CLASSES, key=lambda one: job.shares[one]))
    told = job.per_step.any(axis=0)
    agree = float((job.per_step.argmax(axis=0) == top)[told].mean()) if told.any() else 1.0
    if job.late and job.late.ranks:
        agree = 1.0 - job.late.chance
    sure *= 0.6 + 0.4 * agree
    sure *= 1 - 0.5 * job.unknown
    sure *= min(1.0, UNDISTURBED / min(_times_longer(quality), DISTORTED))
    if CLASSES[top] in BUSY_PAIR:
        sure *= (CLOSE_PAIR if job.close_pair else 1.0) * (1 - UNNAMED * job.unnamed)
    for one in quality:
        # How much longer steps take under the profiler was counted above, where it is known.
        counts = one.severity != "info" and "times_longer" not in one.params
        sure *= _DOUBT.get(one.id, 1.0) if counts else 1.0
        if one.id == "machine-busy" and not job.ledgers[0].on_device:
            sure *= CROWDED ** (2 if job.workers and CLASSES[top] is not Bottleneck.DATA_LOADING else 1)
        if one.id == "unlike-others":
            sure *= UNDISTURBED * (1 - (one.share_affected or 0.0))
        if one.id == "no-launch-links" and CLASSES[top] in IDLE_CLASSES:
            sure *= 1 - UNLINKED * (one.share_affected or 0.0)
    taken = max(one.share("core_wait") for one in job.ledgers)
    if taken > WORTH_SHARE and CLASSES[top] is not Bottleneck.DATA_LOADING:
        sure *= CROWDED
    alone = len(job.ledgers) == 1 or any(one.id == "missing-ranks" for one in quality)
    alone |= job.late is not None and bool(job.late.ranks) and job.excess is None
    if alone and CLASSES[top] is Bottleneck.COMMUNICATION:
        sure *= SKEW_UNKNOWN
    return float(min(max(sure, 0.05), 0.97))


_DOUBT = {
    "no-steps": 0.95,
    "step-cut": 0.95,
    "too-short": 0.8,
    "warm-up-included": 0.97,
    "no-launch-links": 0.95,
    "no-cpu-ops": 0.9,
    "lost-events": 0.8,
    "no-lengths": 0.8,
    "clock-unreliable": 0.9,
    "missing-ranks": 0.95,
    "device-data-missing": 0.6,
    "foreign-format": 0.7,
    "observer-overhead": 0.9,
    "machine-busy": 0.9,
    "cpu-quota": 0.9,
    "off-core": 0.8,
    "slept-in-operators": 0.8,
    "sources-disagree": 0.9,
    "stalled-calls": 0.95,
}


def _from_findings(ranks: Sequence[Measured], findings: Sequence[Finding], quality: Sequence[Quality]) -> Verdict:
    """Return the verdict on recordings without a timeline: what a snapshot or function times alone can show."""
    forbidden = blocks(quality)
    classed = [one for one in findings if one.bottleneck in CLASSES]
    if forbidden is None and classed:
        best = max(classed, key=lambda one: (one.confidence, one.gain.high, one.share))
        others = tuple(dict.fromkeys(one.bottleneck for one in classed if one.bottleneck is not best.bottleneck))
        return Verdict(
            best.bottleneck,
            best.confidence,
            best.gain.high,
            Message(f"rule.{best.rule}.title", best.params),
            contributing=others,
        )
    broken = any("fault" in one.what for rank in ranks if isinstance(one := rank.get(StepLedger), Missing))
    return _abstain("verdict.undetermined.fault" if broken else "verdict.undetermined.no-timeline", {}, ())


def _abstain(key: str, params: Mapping[str, object], late: Sequence[int]) -> Verdict:
    return Verdict(Bottleneck.UNDETERMINED, 0.9, 0.0, Message(key, params), late_ranks=tuple(sorted(late)))


def _spelt(ranks: Sequence[int]) -> str:
    return ", ".join(str(rank) for rank in sorted(ranks))
