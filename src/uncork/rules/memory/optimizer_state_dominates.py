"""optimizer-state-dominates: the optimiser's own tensors are a third or more of the memory in use at the peak."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.snapshot_memory import STATE_SHARE, WORTH_BYTES, SnapshotMemory
from uncork.rules.headroom import best_saving, worth_of
from uncork.rules.rule import rule

UNKNOWN_SHARE = 1 - STATE_SHARE
"""With more of the peak older than the history, the state may be in it."""


@rule()
def optimizer_state_dominates(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: what a smaller or sharded state would free on the rank that holds most of it."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: _state_bytes(pair[1]))
    state_bytes = _state_bytes(mine)
    state_share = state_bytes / max(mine.peak_bytes, 1)
    if mine.peak_bytes < WORTH_BYTES or state_share < STATE_SHARE:
        if mine.peak_categories.get("unknown", 0) > UNKNOWN_SHARE * mine.peak_bytes:
            raise MissingEvidence("history")
        return None
    owner = next((one for one in mine.peak_owners if one.category == "optimizer_state"), None)
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.9 if owner else 0.8,
        location=replace(owner.location if owner else Location(), rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("optimizer_state_share", state_share, "share", STATE_SHARE),
            Evidence("optimizer_state_bytes", state_bytes, "bytes"),
            Evidence("peak_bytes", mine.peak_bytes, "bytes"),
        ),
        params={
            "state_bytes": state_bytes,
            "state_share": state_share,
            "peak_bytes": mine.peak_bytes,
            "saved_bytes": 3 * state_bytes // 4,
            **worth_of(mine, best_saving(mine, "optimizer_8bit")),
        },
    )


def _state_bytes(memory: SnapshotMemory) -> int:
    return memory.peak_categories.get("optimizer_state", 0)
