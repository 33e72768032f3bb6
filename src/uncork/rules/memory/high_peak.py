"""high-peak: most of the memory is in use for a moment only, and none of the usual reasons explains it."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.snapshot_memory import PEAK_SHARE, WORTH_BYTES, SnapshotMemory
from uncork.rules.headroom import worth
from uncork.rules.rule import rule


@rule(
    hidden_by=(
        "activations-dominate",
        "grad-mode-in-inference",
        "graph-retained",
        "logits-upcast",
        "oom-forensics",
        "optimizer-state-dominates",
    )
)
def high_peak(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: what is in use at the peak beyond what was there before, placed on who holds most of it."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: _grown_bytes(pair[1]))
    mine.require_history()
    grown = _grown_bytes(mine)
    share = grown / max(mine.peak_bytes, 1)
    made = [one for one in mine.peak_owners if one.location.file or one.location.op]
    if mine.peak_bytes < WORTH_BYTES or share < PEAK_SHARE or not made:
        return None
    top = made[0]
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.7,
        location=replace(top.location, rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("peak_growth_share", share, "share", PEAK_SHARE),
            Evidence("peak_growth_bytes", grown, "bytes"),
            Evidence("peak_bytes", mine.peak_bytes, "bytes"),
        ),
        params={
            "grown_bytes": grown,
            "peak_bytes": mine.peak_bytes,
            "top_bytes": top.size_bytes,
            "blocks": top.count,
            **worth(0, top.size_bytes),
        },
    )


def _grown_bytes(memory: SnapshotMemory) -> int:
    return memory.peak_bytes - memory.start_bytes - memory.built_bytes
