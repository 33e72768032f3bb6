"""activations-dominate: what the forward pass keeps for the backward pass is most of the memory at the peak."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.snapshot_memory import PEAK_SHARE, WORTH_BYTES, SnapshotMemory
from uncork.rules.headroom import best_saving, worth_of
from uncork.rules.rule import rule

_ADVICE_OF = {"checkpointing": "checkpoint", "checkpointing_calls": "checkpoint", "fused_attention": "fused-attention"}
_ADVICE = ("checkpoint", "fused-attention", "half-precision", "smaller-batch")


@rule(hidden_by=("grad-mode-in-inference",))
def activations_dominate(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: what keeping fewer activations would free on the rank that holds most of them."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: _held_bytes(pair[1]))
    held_bytes = _held_bytes(mine)
    held_share = held_bytes / max(mine.peak_bytes, 1)
    if mine.peak_bytes < WORTH_BYTES or held_share < PEAK_SHARE:
        return None
    backward = bool(_temporary_bytes(mine))
    held = [one for one in mine.peak_owners if one.category in ("activation", "temporary")]
    owner = next((one for one in held if one.location.file), held[0] if held else None)
    saving, checkpoint = best_saving(mine, *_ADVICE_OF), best_saving(mine, "checkpointing", "checkpointing_calls")
    first = (_ADVICE_OF[saving.change],) if saving else ()
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.85,
        location=replace(owner.location if owner else Location(), rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("activation_share", held_share, "share", PEAK_SHARE),
            Evidence("activation_bytes", held_bytes, "bytes"),
            Evidence("peak_bytes", mine.peak_bytes, "bytes"),
        ),
        params={
            "held": f"@memory.held.{'with_temporaries' if backward else 'activations'}",
            "held_bytes": held_bytes,
            "held_share": held_share,
            "peak_bytes": mine.peak_bytes,
            "checkpoint_bytes": checkpoint.high_bytes if checkpoint else held_bytes // 2,
            **worth_of(mine, saving),
        },
        advice=tuple(dict.fromkeys((*first, *_ADVICE))),
    )


def _held_bytes(memory: SnapshotMemory) -> int:
    """Return the activations, and at a peak in the backward pass its own intermediates: they are of the same size."""
    return memory.peak_categories.get("activation", 0) + _temporary_bytes(memory)


def _temporary_bytes(memory: SnapshotMemory) -> int:
    """Return the backward pass's own intermediates at the peak, none where it lies elsewhere."""
    return memory.peak_categories.get("temporary", 0) if memory.peak_phase == "backward" else 0
