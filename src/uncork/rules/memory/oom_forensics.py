"""oom-forensics: a request for device memory failed; who asked, what was free, and who held the rest."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.memory_what_if import Saving
from uncork.measure.snapshot_memory import SnapshotMemory
from uncork.rules.headroom import best_saving, enough, worth_of
from uncork.rules.rule import rule

_ADVICE = {
    "optimizer_state": ("smaller-state", "shard", "smaller-batch"),
    "activation": ("smaller-batch", "checkpoint", "shard"),
    "temporary": ("smaller-batch", "checkpoint"),
    "gradient": ("shard", "smaller-state"),
}
_ADVICE_OF = {"checkpointing": "checkpoint", "checkpointing_calls": "checkpoint", "optimizer_8bit": "smaller-state"}
_PIECES = {"expandable_segments": "expandable"}


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
    top_bytes, top = max((size, word) for word, size in failed.held.items() if word != "unknown")
    top = top if top_bytes else "unknown"
    free, left = failed.free, failed.device_free_bytes
    pieces = failed.in_pieces and not mine.expandable
    best = best_saving(mine, *(_PIECES if pieces else _ADVICE_OF))
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=1.0,
        location=replace(failed.owner.location, rank=number if many else None),
        evidence=(
            Evidence("oom_requested_bytes", failed.requested_bytes, "bytes", free.largest_bytes),
            Evidence("oom_largest_idle_bytes", free.largest_bytes, "bytes"),
            Evidence("oom_idle_bytes", free.idle_bytes, "bytes"),
            *((Evidence("oom_device_free_bytes", left, "bytes"),) if left is not None else ()),
        ),
        advice=_advice(mine, top, best),
        params={
            "requested_bytes": failed.requested_bytes,
            "largest_bytes": free.largest_bytes,
            "idle_bytes": free.idle_bytes,
            "pieces": free.pieces,
            "allocated_bytes": failed.held_bytes,
            "device_free_bytes": "?" if left is None else left,
            "phase": f"@memory.phase.{failed.phase}",
            "top": top,
            "top_name": f"@memory.category.{top}",
            "top_bytes": top_bytes,
            "enough": enough(mine),
            "stopped": mine.stopped,
            **worth_of(mine, best),
        },
    )


def _advice(mine: SnapshotMemory, top: str, best: Saving | None) -> tuple[str, ...]:
    """Return the advice: first what alone would have been enough, then what helps against what holds most."""
    short = mine.oom.short_bytes if mine.oom else None
    enough_alone = best is not None and (best.change in _PIECES or (short is not None and best.low_bytes >= short))
    first = ((_ADVICE_OF | _PIECES)[best.change],) if best is not None and enough_alone else ()
    return tuple(dict.fromkeys((*first, *_ADVICE.get(top, _ADVICE["activation"]))))
