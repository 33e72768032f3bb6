"""What a verdict says: its sentence with figures, and what would overturn it, as messages of the catalogue."""

from collections.abc import Mapping, Sequence

from uncork.findings import CLASSES, Bottleneck, Finding, Message, Quality, Verdict
from uncork.ledger import CAUSES
from uncork.measure.step_ledger import StepLedger

_CAUSES_OF = {
    Bottleneck.COMPUTE: ("gemm", "other_kernel", "bandwidth", "cpu_heavy", "compute"),
    Bottleneck.MEMORY: ("bandwidth", "copy", "copy_host", "allocator", "memop"),
    Bottleneck.DATA_LOADING: ("data_loading", "core_wait", "py_prep"),
    Bottleneck.COMMUNICATION: ("comm",),
    Bottleneck.FRAMEWORK: tuple(cause for cause, kind in CAUSES.items() if kind.bottleneck is Bottleneck.FRAMEWORK),
}
"""Causes that a class's sentence may name: the largest gives the sentence its words."""


def summary(ledgers: Sequence[StepLedger], main: Bottleneck, late: Sequence[int], wait_share: float) -> Message:
    """Return the sentence of a verdict: what the step's time goes to, with its share and its part of the step."""
    step_ns = sum(ledger.mean_step_ns for ledger in ledgers) // len(ledgers)
    spent = {cause: sum(ledger.mean_ns(cause) for ledger in ledgers) // len(ledgers) for cause in _CAUSES_OF[main]}
    largest = max(spent, key=lambda cause: spent[cause])
    cost_ns = sum(spent.values())
    if main is Bottleneck.COMPUTE and largest != "cpu_heavy":
        cost_ns -= spent["cpu_heavy"]
    elif main is Bottleneck.MEMORY:
        cost_ns = spent[largest]
    params: dict[str, object] = {
        "share": cost_ns / step_ns if step_ns else 0.0,
        "cost_ns": cost_ns,
        "step_ns": step_ns,
        "ranks": ", ".join(str(rank) for rank in sorted(late)),
        "wait_share": wait_share,
        "wait_ns": round(wait_share * step_ns),
    }
    if not any(ledger.marked for ledger in ledgers):
        params["unmarked"] = True
    if late:
        return Message(f"verdict.{main.value}.{late_key(late)}", params)
    place = "device" if ledgers[0].on_device else "cpu"
    if main is Bottleneck.COMPUTE and place == "cpu":
        largest = "compute"
    return Message(f"verdict.{main.value}.{_SENTENCE.get(largest, largest)}.{place}", params)


def larger_elsewhere(verdict: Verdict, spent: Mapping[str, float], findings: Sequence[Finding]) -> tuple[Message, ...]:
    """Return why a cause or a finding of another class is no reason for another verdict, where it is the largest.

    Args:
        verdict: What is said.
        spent: Cause → share of a step.
        findings: Worth most first.
    """
    main = verdict.bottleneck
    if main not in CLASSES or verdict.late_ranks:  # why a late rank comes first is said in its sentence
        return ()
    told = []
    largest = max((cause for cause in spent if CAUSES[cause].bottleneck), key=lambda cause: spent[cause], default=None)
    if largest is not None and largest not in _CAUSES_OF[main]:
        told.append(Message("verdict.larger_cause", {"cause": f"@cause.{largest}", "cause_share": spent[largest]}))
    first = findings[0].bottleneck if findings else main
    if first in CLASSES and first is not main:
        params = {"other": f"@class.{first.value}", "main": f"@class.{main.value}"}
        told.append(Message("verdict.larger_finding", params))
    return tuple(told)


def late_key(late: Sequence[int]) -> str:
    """Return the part of a key that speaks of one late rank, or of several."""
    return "late" if len(late) > 1 else "late_one"


_SENTENCE = {
    "compute": "gemm",
    "copy_host": "copy",
    "py_stack": "python",
    "py_short": "dispatch",
    "tiny": "dispatch",
    "optimizer": "dispatch",
    "gc": "pause",
    "io": "pause",
}
"""Causes that share a sentence."""


def wrong_if(main: Bottleneck, quality: Sequence[Quality], late: Sequence[int]) -> tuple[Message, ...]:
    """Return what would overturn a verdict, the most likely first."""
    ids = {one.id for one in quality if one.severity != "info"}
    keys = [key for key, causes in _BY_QUALITY.items() if causes & ids]
    if late:
        keys.append("wrong_if.late")
    keys.append(f"wrong_if.{main.value}")
    return tuple(Message(key) for key in keys)


_BY_QUALITY = {
    "wrong_if.few-steps": {"no-steps", "step-cut", "too-short", "stalled-steps", "unlike-others"},
    "wrong_if.crowded": {"machine-busy", "stalled-calls", "waited-for-core", "cpu-quota", "off-core"},
    "wrong_if.warm-up": {"warm-up-included"},
    "wrong_if.lost": {"lost-events", "no-launch-links", "clock-unreliable", "no-cpu-ops"},
    "wrong_if.missing-ranks": {"missing-ranks"},
    "wrong_if.observer": {"observer-overhead"},
}
"""What limits a recording → what it may hide."""
