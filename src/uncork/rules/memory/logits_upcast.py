"""logits-upcast: the output layer and the loss hold a large part of the peak: logits, fp32 copy, gradient."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.snapshot_memory import SnapshotMemory
from uncork.rules.headroom import best_saving, worth_of
from uncork.rules.rule import rule

LEAST_SHARE = 0.2
"""Of the peak; below it other parts are worth more."""
LEAST_BYTES = 256 << 20
CHUNKS = 8


@rule()
def logits_upcast(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: what a loss in chunks would free on the rank that holds most for it."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: pair[1].logits_bytes)
    mine.require_history()
    share = mine.logits_bytes / max(mine.peak_bytes, 1)
    if mine.logits_bytes < LEAST_BYTES or share < LEAST_SHARE:
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.75,
        location=replace(Location(op="cross_entropy"), rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("logits_share", share, "share", LEAST_SHARE),
            Evidence("logits_bytes", mine.logits_bytes, "bytes", LEAST_BYTES),
        ),
        params={
            "logits_bytes": mine.logits_bytes,
            "logits_share": share,
            "saved_bytes": 0,
            "chunks": CHUNKS,
            **worth_of(mine, best_saving(mine, "chunked_loss")),
        },
    )
