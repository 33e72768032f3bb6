"""What other choices would have saved, by arithmetic on the blocks that were measured: the peak is counted anew."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uncork.measure.allocations import Allocations
from uncork.snapshot import CATEGORIES

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Saving:
    """What one change would save at the peak.

    Args:
        change: Its id: catalogue ``what_if.<change>``.
        low_bytes: At least.
        high_bytes: At most.
    """

    change: str
    low_bytes: int
    high_bytes: int


# (change, category → (part that stays at most, part that stays at least))
CHANGES: tuple[tuple[str, dict[str, tuple[float, float]]], ...] = (
    # Under autocast matrix products and what they save are half as large; norms, softmax and losses stay fp32.
    ("mixed_precision", {"activation": (0.75, 0.5)}),
    # Blocks of equal size: their inputs and one block's inside stay; a transformer block holds 4 to 10 times its input.
    ("checkpointing", {"activation": (0.5, 0.2)}),
    # Two fp32 moments become two bytes and a scale per 256 or 2048 values (bitsandbytes, torchao).
    ("optimizer_8bit", {"optimizer_state": (0.27, 0.25)}),
    # One kernel per group of parameters needs no list of intermediate tensors.
    ("fused_optimizer", {"optimizer_scratch": (0.5, 0.0)}),
    # FSDP shards parameters, gradients and state; ZeRO 1 only the state.
    ("shard_2", {"parameter": (1.0, 0.5), "gradient": (1.0, 0.5), "optimizer_state": (0.5, 0.5)}),
    ("shard_8", {"parameter": (1.0, 0.125), "gradient": (1.0, 0.125), "optimizer_state": (0.125, 0.125)}),
    ("half_batch", {"activation": (0.55, 0.5), "input": (0.5, 0.5)}),
    # Logits and their gradient for one eighth of the tokens at a time.
    ("chunked_loss", {"logits": (0.25, 0.125)}),
)
EVERY_BYTES = 1 << 20
"""Smaller savings are not worth a line."""


def savings(blocks: Allocations, category: IntArray, parts: dict[str, npt.NDArray[np.bool_]]) -> tuple[Saving, ...]:
    """Return what each change saves at the peak, the largest first; the peak may move to another moment.

    Args:
        blocks: All blocks.
        category: Index in `CATEGORIES` of each.
        parts: Other parts that a change may concern: name → which blocks.
    """
    peak = int(blocks.allocated_bytes[blocks.peak])
    masks = {word: category == code for code, word in enumerate(CATEGORIES)} | parts
    found = []
    for change, stays in CHANGES:
        if not any(masks[word].any() for word in stays if word in masks):
            continue
        ends = []
        for end in (0, 1):
            weight: FloatArray = np.ones(len(blocks.size_bytes))
            for word, kept in stays.items():
                if word in masks:
                    weight[masks[word]] = kept[end]
            smaller = np.round(blocks.size_bytes * weight).astype(np.int64)
            ends.append(max(peak - int(blocks.in_use_bytes(smaller).max()), 0))
        if max(ends) >= EVERY_BYTES:
            found.append(Saving(change, min(ends), max(ends)))
    return tuple(sorted(found, key=lambda one: (-one.high_bytes, one.change)))
