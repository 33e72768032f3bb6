"""oom-forensics: a request for device memory failed; who asked, what was free, and who held the rest."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.snapshot_memory import SnapshotMemory
from uncork.rules.rule import rule

_ADVICE = {
    "optimizer_state": ("smaller-state", "shard", "smaller-batch"),
    "activation": ("smaller-batch", "checkpoint", "shard"),
    "temporary": ("smaller-batch", "checkpoint"),
    "gradient": ("shard", "smaller-state"),
}


@rule()
def oom_forensics(memory: Ranks[SnapshotMemory]) -> list[Cost]:
    """Return one finding per rank whose snapshot holds a failed request."""
    if all(mine.source != "snapshot" for mine in memory):
        raise MissingEvidence("snapshot")
    return [
        _cost(mine, number, many=len(memory) > 1)
        for number, mine in zip(memory.numbers, memory, strict=True)
        if mine.oom
    ]


def _cost(mine: SnapshotMemory, number: int, *, many: bool) -> Cost:
    failed = mine.oom
    if failed is None:
        raise ValueError("only for snapshots with a failed request")
    parts = {word: size for word, size in mine.peak_categories.items() if word != "unknown"}
    top = max(parts, key=parts.__getitem__, default="unknown")
    in_pieces = failed.largest_bytes < failed.requested_bytes <= failed.idle_bytes
    advice = _ADVICE.get(top if parts.get(top) else "unknown", ("smaller-batch", "checkpoint", "shard"))
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=1.0,
        location=replace(failed.owner.location, rank=number if many else None),
        evidence=(
            Evidence("oom_requested_bytes", failed.requested_bytes, "bytes", failed.largest_bytes),
            Evidence("oom_largest_idle_bytes", failed.largest_bytes, "bytes"),
            Evidence("oom_idle_bytes", failed.idle_bytes, "bytes"),
            *(
                (Evidence("oom_device_free_bytes", failed.device_free_bytes, "bytes"),)
                if failed.device_free_bytes is not None
                else ()
            ),
        ),
        advice=("expandable", *advice) if in_pieces else advice,
        params={
            "requested_bytes": failed.requested_bytes,
            "largest_bytes": failed.largest_bytes,
            "idle_bytes": failed.idle_bytes,
            "pieces": failed.pieces,
            "allocated_bytes": mine.allocated_bytes,
            "top": top,
            "top_bytes": parts.get(top, 0),
        },
    )
