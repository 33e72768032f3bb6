"""idle-reserve: much more memory is reserved than in use, though it was in use at the peak."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.snapshot_memory import IDLE_RATIO, WORTH_BYTES, SnapshotMemory
from uncork.rules.rule import rule


@rule(
    hidden_by=(
        "activations-dominate",
        "fragmentation",
        "grad-mode-in-inference",
        "graph-retained",
        "high-peak",
        "logits-upcast",
        "oom-forensics",
        "optimizer-state-dominates",
    )
)
def idle_reserve(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: what is reserved beyond use at the end, on the rank where it is most."""
    if all(one.reserved_bytes is None for one in memory):
        raise MissingEvidence("snapshot")
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: _idle_bytes(pair[1]))
    idle, allocated = _idle_bytes(mine), max(mine.allocated_bytes, 1)
    ratio = (mine.reserved_bytes or 0) / allocated
    if idle < WORTH_BYTES or ratio < IDLE_RATIO:
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.55,
        location=Location(rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("reserved_ratio", ratio, "ratio", IDLE_RATIO),
            Evidence("idle_bytes", idle, "bytes", WORTH_BYTES),
            Evidence("split_idle_bytes", mine.free.split_bytes if mine.free else 0, "bytes"),
        ),
        params={"idle_bytes": idle, "reserved_bytes": mine.reserved_bytes or 0, "allocated_bytes": allocated},
    )


def _idle_bytes(memory: SnapshotMemory) -> int:
    return (memory.reserved_bytes or 0) - memory.allocated_bytes
