"""Hand-made reports for tests of everything that reads one."""

from dataclasses import replace

from uncork.findings import Bottleneck, Evidence, Finding, Gain, Location, Message, NotAssessed, Quality, Verdict
from uncork.report import LedgerEntry, Report

MS = 1_000_000


def starved_report() -> Report:
    """Return the report of a job whose step of 100 ms waits 60 ms for data."""
    return Report(
        verdict=Verdict(
            bottleneck=Bottleneck.DATA_LOADING,
            confidence=0.93,
            share=0.6,
            summary=Message("test sentence: waits {wait_ns}", {"wait_ns": 60 * MS}),
            contributing=(Bottleneck.COMPUTE,),
            would_be_wrong_if=(Message("test: the steps are not typical"),),
        ),
        ledger=(
            LedgerEntry("data_loading", Bottleneck.DATA_LOADING, 60 * MS, 0.6),
            LedgerEntry("compute", Bottleneck.COMPUTE, 39_800_000, 0.398),
            LedgerEntry("tiny", Bottleneck.FRAMEWORK, 200_000, 0.002),
        ),
        findings=(
            Finding(
                rule="test-rule",
                bottleneck=Bottleneck.DATA_LOADING,
                cost_ns_per_step=60 * MS,
                share=0.6,
                gain=Gain(0.3, 0.55),
                confidence=0.9,
                location=Location(file="train.py", line=41, function="__getitem__"),
                evidence=(
                    Evidence("data_loading_share", 0.6, "share", 0.05),
                    Evidence("workers", 0, "count", 1, "<"),
                    Evidence("item_ns", 2 * MS, "ns"),
                ),
                params={"workers": 2},
            ),
        ),
        not_assessed=(NotAssessed("test-blind", ("shapes", "stacks")),),
        clear=("test-clear",),
        quality=(Quality("no-shapes", "info"), Quality("no-steps", "warning", 0.5)),
        run={
            "sources": ["trace.json"],
            "ranks": [0],
            "devices": [],
            "versions": {"torch": "2.13.0"},
            "steps": 5,
            "marked_steps": True,
            "step_ns": 100 * MS,
            "median_step_ns": 99 * MS,
            "step_spread_share": 0.04,
            "on_device": False,
            "busy_share": 0.4,
        },
        tables={
            "operators": [
                {"name": "aten::mm", "calls": 3, "cpu_total_ns": 30 * MS, "cpu_self_ns": 20 * MS},
                {"name": "aten::add|<b>", "calls": 9, "cpu_total_ns": 5 * MS, "cpu_self_ns": 5 * MS},
            ]
        },
    )


def with_step(report: Report, step_ns: int) -> Report:
    """Return the report with another median step time."""
    return replace(report, run={**report.run, "median_step_ns": step_ns})
