"""graph-retained: what a step made and no other needs is still in use at the end, or more with every step."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.memory_views import growth_bytes
from uncork.measure.snapshot_memory import KEPT_SHARE, SnapshotMemory
from uncork.rules.headroom import worth
from uncork.rules.rule import rule

LEAST_BYTES = 256 << 20
"""Less kept at the end of a history is a batch still in a variable."""
GROWTH_BYTES = 1 << 20
"""Growth per step below this is a logger's or a cache's."""
_NOT_MEANT_TO_STAY = frozenset({"activation", "temporary", "unknown"})


@rule()
def graph_retained(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: what is kept beyond its use, on the rank that keeps most of it."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: _kept_bytes(pair[1]))
    mine.require_history()
    kept, growth = _kept_bytes(mine), growth_bytes(mine.step_bytes)
    if mine.oom is not None and growth < GROWTH_BYTES:
        return None  # the step that failed was not over: what it holds at the end it may need
    share = kept / max(mine.allocated_bytes, 1)
    if growth < GROWTH_BYTES and (kept < LEAST_BYTES or share < KEPT_SHARE):
        return None
    owner = next((one for one in mine.kept_owners if one.category in _NOT_MEANT_TO_STAY), None)
    graph = owner is not None and owner.category == "activation"
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.85 if growth >= GROWTH_BYTES else 0.65 if graph else 0.5,
        location=replace(owner.location if owner else Location(), rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("kept_share", share, "share", KEPT_SHARE),
            Evidence("kept_bytes", kept, "bytes", LEAST_BYTES),
            *((Evidence("growth_per_step_bytes", growth, "bytes", GROWTH_BYTES),) if mine.step_bytes else ()),
        ),
        params={
            "kept_bytes": kept,
            "kept_share": share,
            "growth_bytes": growth,
            "blocks": owner.count if owner else 0,
            **worth(0, kept),
        },
    )


def _kept_bytes(memory: SnapshotMemory) -> int:
    """Return what was made during the history and is in use at its end, but for what a training keeps anyway."""
    return sum(one.size_bytes for one in memory.kept_owners if one.category in _NOT_MEANT_TO_STAY)
