"""The source articles' reading rules (requirements R3.1–R3.5): each class's thresholds beside what was measured.

They are evidence, not the verdict: the ledger decides. Where they would say something else, the report says so.
"""

from collections.abc import Callable, Sequence

import numpy as np

from uncork.findings import Bottleneck, ClassEvidence, Evidence, Message, Verdict
from uncork.measure import Measured, Measurement, Missing
from uncork.measure.dispatch import Dispatch
from uncork.measure.memory_use import MemoryUse
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable
from uncork.measure.step_ledger import StepLedger

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
    found = [
        *_compute(measured),
        *_memory(measured),
        *_data_loading(measured),
        *_communication(measured),
        *_framework(measured),
    ]
    return tuple(one for one in found if one is not None)


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


def _mean(measured: Sequence[Measured], kind: type[Measurement], of: Callable[..., float | None]) -> float | None:
    """Return the mean of a figure over the ranks that have it, None where none has."""
    values = [of(value) for one in measured if not isinstance(value := one.get(kind, Missing(())), Missing)]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _line(
    bottleneck: Bottleneck,
    metric: str,
    value: float | None,
    threshold: float,
    *,
    relation: str = ">",
    unit: str = "share",
) -> ClassEvidence | None:
    """Return a line of evidence, None where it was not measured."""
    return None if value is None else ClassEvidence(bottleneck, Evidence(metric, value, unit, threshold, relation))


def _busy(ledger: StepLedger) -> float | None:
    return ledger.busy_share if ledger.step_ns.any() else None


def _busy_spread(ledger: StepLedger) -> float | None:
    """Return how far the busy share of the steps varies: standard deviation over mean."""
    if len(ledger.step_ns) < 3 or not ledger.step_ns.all():
        return None
    shares = ledger.busy_ns / ledger.step_ns
    return float(shares.std() / shares.mean()) if shares.mean() else None


def _top_share(table: OperatorTable, wanted: Callable[[Operator], bool]) -> float | None:
    """Return the share of the three largest operators of a kind in all operator time (the device's, if any)."""
    whole = table.device_ns if table.on_device else table.cpu_ns
    if not whole:
        return None
    own = [one.device_self_ns if table.on_device else one.cpu_self_ns for one in table.operators if wanted(one)]
    return min(sum(sorted(own)[-_TOP:]) / whole, 1.0)


def _is_compute(one: Operator) -> bool:
    return one.kernel_class in {"conv", "gemm", "attention"} or (not one.kernel_class and one.op_class == "compute")


def _is_memory(one: Operator) -> bool:
    return one.kernel_class == "copy" or one.op_class == "memory"


def _on_device(ledger: StepLedger, share: Callable[[StepLedger], float | None]) -> float | None:
    return share(ledger) if ledger.on_device else None


def _compute(measured: Sequence[Measured]) -> list[ClassEvidence | None]:
    kind = Bottleneck.COMPUTE
    return [
        _line(
            kind,
            "top_compute_share",
            _mean(measured, OperatorTable, lambda table: _top_share(table, _is_compute)),
            TOP_COMPUTE_SHARE,
        ),
        _line(kind, "busy_share", _mean(measured, StepLedger, lambda one: _on_device(one, _busy)), BUSY_SHARE),
        _line(
            kind,
            "busy_spread_share",
            _mean(measured, StepLedger, lambda one: _on_device(one, _busy_spread)),
            STEADY_SPREAD,
            relation="<",
        ),
    ]


def _memory(measured: Sequence[Measured]) -> list[ClassEvidence | None]:
    kind = Bottleneck.MEMORY
    return [
        _line(
            kind,
            "top_memory_share",
            _mean(measured, OperatorTable, lambda table: _top_share(table, _is_memory)),
            TOP_MEMORY_SHARE,
        ),
        _line(
            kind,
            "near_capacity_share",
            _mean(measured, MemoryUse, lambda use: (use.allocated_bytes or use.used_bytes) / use.capacity_bytes),
            ALLOCATED_SHARE,
        ),
        _line(
            kind,
            "reserved_ratio",
            _mean(
                measured, MemoryUse, lambda use: use.used_bytes / use.allocated_bytes if use.allocated_bytes else None
            ),
            RESERVED_RATIO,
            unit="ratio",
        ),
    ]


def _data_loading(measured: Sequence[Measured]) -> list[ClassEvidence | None]:
    kind = Bottleneck.DATA_LOADING
    return [
        _line(
            kind,
            "busy_share",
            _mean(measured, StepLedger, lambda one: _on_device(one, _busy)),
            STARVED_BUSY_SHARE,
            relation="<",
        ),
        _line(
            kind,
            "loader_share",
            _mean(measured, StepLedger, lambda one: one.share("data_loading", "py_prep")),
            LOADER_SHARE,
        ),
    ]


def _communication(measured: Sequence[Measured]) -> list[ClassEvidence | None]:
    share = _mean(measured, StepLedger, lambda one: one.share("comm", "comm_wait"))
    return [_line(Bottleneck.COMMUNICATION, "exposed_comm_share", share or None, COMMUNICATION_SHARE)]


def _framework(measured: Sequence[Measured]) -> list[ClassEvidence | None]:
    kind = Bottleneck.FRAMEWORK
    dispatching = ("dispatch", "py_short", "py_stack", "sync", "tiny")
    return [
        _line(
            kind, "tiny_calls", _mean(measured, Dispatch, lambda one: float(one.tiny.sum())), TINY_CALLS, unit="count"
        ),
        _line(
            kind,
            "dispatch_idle_share",
            _mean(measured, StepLedger, lambda one: one.share(*dispatching)),
            DISPATCH_IDLE_SHARE,
        ),
    ]
