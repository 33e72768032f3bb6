"""allocator-churn: the driver is asked for memory, or given it back, in steps that should live from the cache."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.allocator_calls import AllocatorCalls
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.02
"""Of the step; msprof speaks from 10 ms in all on."""
MOST_STEPS_SHARE = 0.5
"""Calls in fewer steps are the cache growing, which ends by itself."""


@rule()
def allocator_churn(calls: Ranks[AllocatorCalls], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the ledger's time for allocator calls on the rank that loses most."""
    place = int(np.argmax([one.mean_ns("allocator") for one in ledger]))
    mine, steps = calls[place], ledger[place]
    cost_ns, share = steps.mean_ns("allocator"), steps.share("allocator")
    if share < LEAST_SHARE:
        return None
    if not mine.marked or mine.steps < 2:
        # One window cannot tell the cache growing at the start from calls in every step.
        raise MissingEvidence("steps")
    if mine.steps_with_calls <= MOST_STEPS_SHARE * mine.steps:
        return None
    gives_back = mine.frees_per_step >= 1
    return Cost(
        ns_per_step=cost_ns,
        gain=Gain(0.5 * share, share),
        confidence=0.85,
        location=Location(rank=calls.numbers[place] if len(calls) > 1 else None),
        evidence=(
            Evidence("allocator_share", share, "share", LEAST_SHARE),
            Evidence("mallocs_per_step", mine.mallocs_per_step, "count"),
            Evidence("frees_per_step", mine.frees_per_step, "count"),
        ),
        advice=("no-empty-cache", "smaller", "expandable") if gives_back else ("expandable", "stable-sizes"),
        params={"mallocs": mine.mallocs_per_step, "frees": mine.frees_per_step, "calls_ns": mine.host_ns_per_step},
    )
