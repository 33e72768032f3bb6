"""Evidence: where the page shows what a finding is about."""

from collections.abc import Mapping
from typing import Any

from uncork.findings import Bottleneck, Finding
from uncork.ledger import CAUSES
from uncork.measure.views.names import printable
from uncork.report import Report

Json = dict[str, Any]

_CAUSES_OF: Mapping[str, tuple[str, ...]] = {
    "host-sync": ("sync",),
    "garbage-collection": ("gc",),
    "recompilation": ("compile",),
    "graph-breaks": ("compile",),
    "launch-bound": ("dispatch", "tiny"),
    "python-between-ops": ("py_short", "py_stack"),
    "allocator-churn": ("allocator",),
    "pageable-copy": ("copy_host", "copy"),
    "exposed-copies": ("copy", "copy_host"),
    "round-trip-copies": ("copy", "copy_host", "sync"),
    "main-thread-preprocessing": ("py_prep", "data_loading"),
    "exposed-collectives": ("comm", "comm_wait"),
    "late-rank": ("comm_wait", "comm"),
    "per-step-logging": ("io",),
    "workers-take-cores": ("compute", "memop", "tiny", "optimizer"),
}
"""Rules about some of their class's causes only."""


def match(finding: Finding, report: Report) -> Json:
    """Return how the page finds the stretches that a finding is about: its causes that took time, or its operator."""
    causes = _CAUSES_OF.get(finding.rule) or tuple(
        name for name, cause in CAUSES.items() if cause.bottleneck == finding.bottleneck and name != "core_wait"
    )
    present = {entry.cause for entry in report.ledger if entry.ns_per_step > 0}
    shown = [cause for cause in causes if cause in present]
    op = finding.location.op
    # Computing is everywhere: there the operator tells more than the cause; elsewhere the cause is the stretch itself.
    by_name = op is not None and (finding.bottleneck is Bottleneck.COMPUTE or not shown)
    names = [printable(op)] if by_name and op else []
    return {"causes": shown, "names": names, "rank": finding.location.rank}


def view_of(finding: Finding, report: Report) -> str:
    """Return the page's view that shows a finding: ``timeline``, ``memory``, or empty where none does."""
    found = match(finding, report)
    if "TimelineView" in report.views and (found["causes"] or found["names"]):
        return "timeline"
    return "memory" if finding.bottleneck is Bottleneck.MEMORY and report.memory else ""
