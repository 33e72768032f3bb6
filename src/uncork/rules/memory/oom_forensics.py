"""oom-forensics: a request for device memory failed; who asked, what was free, and who held the rest."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.memory_what_if import Saving
from uncork.measure.snapshot_memory import SnapshotMemory
from uncork.rules.headroom import best_saving, worth_of
from uncork.rules.rule import rule

_ADVICE = {
    "optimizer_state": ("smaller-state", "shard", "smaller-batch"),
    "activation": ("smaller-batch", "checkpoint", "shard"),
    "temporary": ("smaller-batch", "checkpoint"),
    "gradient": ("shard", "smaller-state"),
}
_ADVICE_OF = {"checkpointing": "checkpoint", "checkpointing_calls": "checkpoint", "optimizer_8bit": "smaller-state"}
_IN_ONE_PROCESS = (
    "checkpointing", "checkpointing_calls", "chunked_loss", "fused_optimizer", "inference_mode", "mixed_precision",
    "optimizer_8bit",
)  # fmt: skip
"""Changes that leave batch and number of devices as they are."""
_MOST_NAMED = 3


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
    parts = {word: size for word, size in failed.held.items() if word != "unknown"}
    top = max(parts, key=parts.__getitem__, default="unknown")
    top = top if parts.get(top) else "unknown"
    free, left = failed.free, failed.device_free_bytes
    best = best_saving(mine, *_ADVICE_OF)
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
            "top_bytes": parts.get(top, 0),
            "enough": _enough(mine),
            **worth_of(mine, best),
        },
    )


def _advice(mine: SnapshotMemory, top: str, best: Saving | None) -> tuple[str, ...]:
    """Return the advice: first what alone would have been enough, then what helps against what holds most."""
    first = ["expandable"] if mine.oom and mine.oom.in_pieces and not mine.expandable else []
    short = mine.oom.short_bytes if mine.oom else None
    if best is not None and short is not None and best.low_bytes >= short:
        first.append(_ADVICE_OF[best.change])
    return tuple(dict.fromkeys((*first, *_ADVICE.get(top, _ADVICE["activation"]))))


def _enough(mine: SnapshotMemory) -> str:
    """Return the changes each of which alone would have let the request through, as keys of the catalogue."""
    short = mine.oom.short_bytes if mine.oom else None
    if short is None:
        return "@headroom.enough_unknown"
    found = [one.change for one in mine.savings if one.low_bytes >= short]
    found.sort(key=lambda change: change not in _IN_ONE_PROCESS)
    return " ".join(f"@what_if.{change}" for change in found[:_MOST_NAMED]) or "@headroom.enough_none"
