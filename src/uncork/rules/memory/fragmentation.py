"""fragmentation: the allocator holds much more than is in use at the peak, in pieces that requests do not fit into."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.failed_request import FreePieces
from uncork.measure.snapshot_memory import WORTH_BYTES, SnapshotMemory
from uncork.rules.headroom import best_saving, worth, worth_of
from uncork.rules.rule import rule

IDLE_SHARE = 0.12
"""Reserved but unused at the peak, of what is reserved. Nearest snapshots known: 10 % (fine), 18 % (fragmented)."""


@rule()
def fragmentation(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: reserved memory that is idle at the very peak, on the rank that has most of it."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: pair[1].idle_at_peak_bytes or 0)
    if mine.idle_at_peak_bytes is None:
        raise MissingEvidence("snapshot")
    free = mine.free or FreePieces(0, 0, 0, 0)
    # Without history the moment of the peak is unknown: then only what lies between blocks in use is surely lost.
    idle_bytes = mine.idle_at_peak_bytes if mine.has_history else free.split_bytes
    reserved = mine.reserved_peak_bytes or 0
    share = idle_bytes / reserved if reserved else 0.0
    failed = mine.oom is not None and mine.oom.in_pieces
    if not failed and (idle_bytes < WORTH_BYTES or share < IDLE_SHARE):
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.95 if failed else 0.75,
        location=Location(rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("idle_at_peak_share", share, "share", IDLE_SHARE),
            Evidence("idle_at_peak_bytes", idle_bytes, "bytes", WORTH_BYTES),
            Evidence("split_idle_bytes", free.split_bytes, "bytes"),
            Evidence("idle_pieces", free.pieces, "count"),
        ),
        advice=("stable-sizes", "set-free") if mine.expandable else (),
        params={
            "idle_bytes": idle_bytes,
            "idle_share": share,
            "reserved_bytes": reserved,
            "peak_bytes": mine.peak_bytes,
            "pieces": free.pieces,
            "largest_bytes": free.largest_bytes,
            **worth(0, idle_bytes),
            **worth_of(mine, best_saving(mine, "expandable_segments")),
        },
    )
