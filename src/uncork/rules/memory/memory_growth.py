"""memory-growth: more memory is in use at the start of every step than at the start of the one before."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.memory_views import LEAST_STEPS, growth_bytes
from uncork.measure.trace_memory import TraceMemory
from uncork.rules.rule import rule

GROWTH_BYTES = 1 << 20
"""Less per step is a logger's or a cache's."""


@rule()
def memory_growth(memory: Ranks[TraceMemory]) -> Cost | None:
    """Return head room: the median growth per step on the rank where it is largest."""
    if all(not one.marked or len(one.step_bytes) < LEAST_STEPS for one in memory):
        raise MissingEvidence("few_steps")
    grown = [growth_bytes(one.step_bytes) if one.marked else 0 for one in memory]
    growth = max(grown)
    if growth < GROWTH_BYTES:
        return None
    mine, number = memory[grown.index(growth)], memory.numbers[grown.index(growth)]
    held, capacity = mine.reserved_peak_bytes or mine.peak_bytes, mine.capacity_bytes
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.75,
        location=replace(mine.keeper, rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("step_growth_bytes", growth, "bytes", GROWTH_BYTES),
            Evidence("peak_bytes", mine.peak_bytes, "bytes"),
            *((Evidence("steps_until_full", max(capacity - held, 0) // growth, "count"),) if capacity else ()),
        ),
        params={"growth_bytes": growth, "steps": len(mine.step_bytes)},
    )
