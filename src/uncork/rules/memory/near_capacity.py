"""near-capacity: the device's memory is nearly full, so the next longer batch fails."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.memory_use import MemoryUse
from uncork.rules.headroom import best_of, worth
from uncork.rules.rule import rule

FULL_SHARE = 0.9
"""Used of the device's memory (requirement R3.2; torch-tb-profiler and fournex draw the same line)."""


@rule(hidden_by=("oom-forensics",))
def near_capacity(use: Ranks[MemoryUse]) -> Cost | None:
    """Return head room on the rank that is fullest."""
    number, mine = max(zip(use.numbers, use, strict=True), key=lambda pair: pair[1].used_bytes / pair[1].capacity_bytes)
    share = mine.used_bytes / mine.capacity_bytes
    if share < FULL_SHARE:
        return None
    best = best_of(mine.savings, "checkpointing", "checkpointing_calls", "chunked_loss", "optimizer_8bit")
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.9 if mine.source != "samples" else 0.7,
        location=Location(rank=number if len(use) > 1 else None),
        evidence=(
            Evidence("near_capacity_share", share, "share", FULL_SHARE),
            Evidence("used_bytes", mine.used_bytes, "bytes"),
            Evidence("capacity_bytes", mine.capacity_bytes, "bytes"),
        ),
        params={
            "used_bytes": mine.used_bytes,
            "used_share": share,
            "capacity_bytes": mine.capacity_bytes,
            "free_bytes": max(mine.capacity_bytes - mine.used_bytes, 0),
            **(worth(best.low_bytes, best.high_bytes, best.change) if best else {}),
        },
    )
