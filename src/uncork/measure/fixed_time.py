"""How much of a step a larger batch would not take again: the bound on what more memory can give in time."""

from uncork.measure import MissingEvidence, Rank
from uncork.measure.step_ledger import StepLedger

FIXED_CAUSES = (
    "comm", "sync", "allocator", "gc", "compile", "io", "dispatch", "tiny", "optimizer", "py_short", "py_stack",
)  # fmt: skip
"""Causes of the ledger that take as long for a larger batch, at best: so many launches and gradients per step."""


def fixed_share(rank: Rank) -> float | None:
    """Return the share of a step that does not grow with the batch, None where the recording has no timed steps."""
    try:
        ledger = rank.made(StepLedger)
    except MissingEvidence:
        return None
    return ledger.share(*FIXED_CAUSES) if ledger.marked and ledger.mean_step_ns else None


def time_share(fixed: float | None, times: float | None) -> float | None:
    """Return by how much shorter a sample's time gets at most with a batch some times as large; None where unknown.

    A step of r times the batch holds the fixed part once: 1 − 1/r of it per sample is gone, if the rest only grows.
    """
    return None if fixed is None or times is None or times < 1 else fixed * (1 - 1 / times)
