"""memory-growth: more memory is in use at the start of every step than at the start of the one before."""

from dataclasses import replace

import numpy as np

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.trace_memory import TraceMemory
from uncork.rules.rule import rule

GROWTH_BYTES = 1 << 20
"""Less per step is a logger's or a cache's."""
LEAST_STEPS = 4
"""The first step's growth is set-up: optimiser state, workspaces; a trend needs two differences after it."""


@rule()
def memory_growth(memory: Ranks[TraceMemory]) -> Cost | None:
    """Return head room: the median growth per step on the rank where it is largest."""
    if all(not one.marked or len(one.step_bytes) < LEAST_STEPS for one in memory):
        raise MissingEvidence("few_steps")
    number, growth = max(
        ((number, _growth_bytes(one)) for number, one in zip(memory.numbers, memory, strict=True)),
        key=lambda pair: pair[1],
    )
    if growth < GROWTH_BYTES:
        return None
    mine = memory[memory.numbers.index(number)]
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.75,
        location=replace(mine.keeper, rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("step_growth_bytes", growth, "bytes", GROWTH_BYTES),
            Evidence("peak_bytes", mine.peak_bytes, "bytes"),
        ),
        params={"growth_bytes": growth, "steps": len(mine.step_bytes)},
    )


def _growth_bytes(memory: TraceMemory) -> int:
    """Return the median growth from step to step after the first, 0 unless each adds something."""
    if not memory.marked or len(memory.step_bytes) < LEAST_STEPS:
        return 0
    growth = np.diff(memory.step_bytes[1:])
    return int(np.median(growth)) if (growth > 0).all() else 0
