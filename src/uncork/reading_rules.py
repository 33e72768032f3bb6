"""The source articles' reading rules (requirements R3.1–R3.5): each class's thresholds beside what was measured.

They are evidence, not the verdict: the ledger decides. Where they would say something else, the report says so.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from uncork.findings import Bottleneck, ClassEvidence, Evidence, Message, Verdict
from uncork.measure import Measured, Measurement, present
from uncork.measure.dispatch import Dispatch
from uncork.measure.memory_use import MemoryUse
from uncork.measure.operators import OperatorTable
from uncork.measure.step_ledger import StepLedger
from uncork.records import dataclass

# Thresholds of the articles, as restated in requirements R3.1 to R3.5.
TOP_COMPUTE_SHARE = 0.70
BUSY_SHARE = 0.85
STEADY_SPREAD = 0.10
TOP_MEMORY_SHARE = 0.30
ALLOCATED_SHARE = 0.90
RESERVED_RATIO = 1.3
STARVED_BUSY_SHARE = 0.30
LOADER_SHARE = 0.50
COMMUNICATION_SHARE = 0.40
TINY_CALLS = 10_000
DISPATCH_IDLE_SHARE = 0.20
_TOP = 3


def class_evidence(measured: Sequence[Measured]) -> tuple[ClassEvidence, ...]:
    """Return the evidence for and against each class; figures are means over the ranks that have them."""
    found = []
    for line in LINES:
        value = _mean(measured, line)
        if value is not None and (value or line.metric not in _NOTHING_AT_ZERO):
            evidence = Evidence(line.metric, value, line.unit, line.threshold, line.relation)
            found.append(ClassEvidence(line.bottleneck, evidence))
    return tuple(found)


def disagreements(verdict: Verdict) -> tuple[Message, ...]:
    """Return a sentence for each class whose thresholds all hold though the ledger does not name it."""
    named = {verdict.bottleneck, *verdict.contributing}
    if verdict.bottleneck is Bottleneck.UNDETERMINED:
        return ()
    messages = []
    for bottleneck in dict.fromkeys(one.bottleneck for one in verdict.evidence):
        held = [one.evidence for one in verdict.evidence if one.bottleneck is bottleneck]
        told = [one for one in held if one.holds is not None]
        if bottleneck not in named and told and all(one.holds for one in told):
            messages.append(Message(f"verdict.thresholds.{bottleneck.value}", {"value_share": told[0].value}))
    return tuple(messages)


def _mean(measured: Sequence[Measured], line: "Line") -> float | None:
    """Return the mean of a figure over the ranks that have it, None where none has."""
    known = [value for one in present(measured, line.kind) if (value := line.figure(one)) is not None]
    return float(np.mean(known)) if known else None


def _busy(ledger: StepLedger) -> float | None:
    """Return the share of the steps in which a device works; None without one."""
    return ledger.busy_share if ledger.on_device and ledger.step_ns.any() else None


def _busy_spread(ledger: StepLedger) -> float | None:
    """Return how far that share varies from step to step: standard deviation over mean."""
    if not ledger.on_device or len(ledger.step_ns) < 3 or not ledger.step_ns.all():
        return None
    shares = ledger.busy_ns / ledger.step_ns
    return float(shares.std() / shares.mean()) if shares.mean() else None


LOADS = "loading"


def _top_share(wanted: Callable[[str, str], bool], table: OperatorTable) -> float | None:
    """Return the share of the three largest operators of a kind in all operator time (the device's, if any)."""
    times = [(one, one.device_self_ns if table.on_device else one.cpu_self_ns) for one in table.operators]
    # What the loader calls is loading, whatever it does.
    whole = (table.device_ns if table.on_device else table.cpu_ns) - sum(ns for one, ns in times if one.phase == LOADS)
    if whole <= 0:
        return None
    own = [ns for one, ns in times if one.phase != LOADS and wanted(one.kernel_class, one.op_class)]
    return min(sum(sorted(own)[-_TOP:]) / whole, 1.0)


def is_compute(kernel_class: str, op_class: str) -> bool:
    """Return whether an operator computes: by its kernel where it launches one, else by its name."""
    return kernel_class in {"conv", "gemm", "attention"} or (not kernel_class and op_class == "compute")


def is_memory(kernel_class: str, op_class: str) -> bool:
    """Return whether an operator moves, fills or joins memory."""
    return kernel_class == "copy" or op_class == "memory"


@dataclass(frozen=True)
class Line:
    """One threshold of the articles.

    Args:
        metric: Name of the evidence.
        bottleneck: The class that it speaks for.
        kind: The measurement that the figure is taken from.
        figure: Returns a rank's figure from it, None where it has none.
        relation: ``>`` or ``<``: how the figure stands to the threshold where it speaks for the class.
        threshold: What the figure is held against.
        unit: Of both.
    """

    metric: str
    bottleneck: Bottleneck
    kind: type[Measurement]
    figure: Callable[[Any], float | None]
    relation: str
    threshold: float
    unit: str = "share"


_DISPATCHING = ("dispatch", "py_short", "py_stack", "sync", "tiny")
_NOTHING_AT_ZERO = frozenset({"exposed_comm_share"})
"""Without collectives there is nothing to hold against a threshold."""


def _share_of(*causes: str) -> Callable[[StepLedger], float]:
    return lambda ledger: ledger.share(*causes)


def _near_capacity(use: MemoryUse) -> float:
    return (use.allocated_bytes or use.used_bytes) / use.capacity_bytes


def _reserved(use: MemoryUse) -> float | None:
    return use.used_bytes / use.allocated_bytes if use.allocated_bytes else None


_C, _M, _D = Bottleneck.COMPUTE, Bottleneck.MEMORY, Bottleneck.DATA_LOADING
_N, _F = Bottleneck.COMMUNICATION, Bottleneck.FRAMEWORK

LINES = (
    Line("top_compute_share", _C, OperatorTable, partial(_top_share, is_compute), ">", TOP_COMPUTE_SHARE),
    Line("busy_share", _C, StepLedger, _busy, ">", BUSY_SHARE),
    Line("busy_spread_share", _C, StepLedger, _busy_spread, "<", STEADY_SPREAD),
    Line("top_memory_share", _M, OperatorTable, partial(_top_share, is_memory), ">", TOP_MEMORY_SHARE),
    Line("near_capacity_share", _M, MemoryUse, _near_capacity, ">", ALLOCATED_SHARE),
    Line("reserved_ratio", _M, MemoryUse, _reserved, ">", RESERVED_RATIO, "ratio"),
    Line("busy_share", _D, StepLedger, _busy, "<", STARVED_BUSY_SHARE),
    Line("loader_share", _D, StepLedger, _share_of("data_loading", "py_prep"), ">", LOADER_SHARE),
    Line("exposed_comm_share", _N, StepLedger, _share_of("comm", "comm_wait"), ">", COMMUNICATION_SHARE),
    Line("tiny_calls", _F, Dispatch, lambda one: float(one.tiny.sum()), ">", TINY_CALLS, "count"),
    Line("dispatch_idle_share", _F, StepLedger, _share_of(*_DISPATCHING), ">", DISPATCH_IDLE_SHARE),
)
"""By class, in the order in which they are shown."""
