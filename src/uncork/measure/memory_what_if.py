"""What other choices would have saved, and how much larger a batch would fit: the memory over time is counted anew."""

from collections.abc import Callable, Container, Mapping

import numpy as np
import numpy.typing as npt

from uncork.findings import Location
from uncork.measure.allocations import Allocations
from uncork.measure.repeated_calls import RepeatedCall
from uncork.records import dataclass
from uncork.snapshot import CATEGORIES, MemoryTimeline

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Curves = Callable[[Mapping[str, float]], tuple[IntArray, IntArray]]
Stays = Mapping[str, tuple[float, float]]
"""Category or other part → (part of it that stays at most, at least)."""


FULL_SHARE = 0.9
"""Of a device's memory that a larger batch may fill (requirement R3.2 calls more than that fragile)."""
MOST_BATCH_RATIO = 16.0
"""Beyond it other limits come first, and the estimate means nothing."""
GROWING = ("activation", "input", "temporary")
"""Categories that grow with the batch."""


@dataclass(frozen=True)
class Saving:
    """What one change would save at the peak.

    Args:
        change: Its id: catalogue ``what_if.<change>``.
        low_bytes: At least.
        high_bytes: At most.
        batch_ratio: How many times the batch would fit then at most, None where nothing that grows with it was seen.
        location: The line that it concerns, where it is one.
        calls: How many modules that line calls.
    """

    change: str
    low_bytes: int
    high_bytes: int
    batch_ratio: float | None = None
    location: Location | None = None
    calls: int = 0


@dataclass(frozen=True)
class Budget:
    """What the memory in use is held against.

    Args:
        room_bytes: What could be in use besides the most that was; negative where a request failed.
        failure: Place of a failed request: what came before had room, so that moment counts alone.
        asked_bytes: What the failed request would have added, if it grows with the batch.
    """

    room_bytes: int = 0
    failure: int | None = None
    asked_bytes: int = 0


class InUse:
    """Bytes in use over time, and what they would be if parts of them were smaller.

    Args:
        curves: Part → share of it that stays, to bytes in use that do not grow with the batch and such that do.
        budget: What they are held against.
    """

    def __init__(self, curves: Curves, budget: Budget) -> None:
        self._curves = curves
        self._budget = budget
        self.peak_bytes = int(np.add(*curves({})).max())

    def saved_bytes(self, stays: Mapping[str, float]) -> int:
        """Return by how much the peak is lower if only some share of each part stays."""
        asked_bytes = round(self._budget.asked_bytes * (1 - stays.get("asked", 1.0)))
        return max(self.peak_bytes - int(np.add(*self._curves(stays)).max()), 0) + asked_bytes

    def batch_ratio(self, stays: Mapping[str, float], more_bytes: int = 0) -> float | None:
        """Return how many times the batch fits at most, with more room besides the budget's."""
        asked = round(self._budget.asked_bytes * stays.get("asked", 1.0))
        fixed, growing = self._curves(stays)
        grows = growing > 0
        if not grows.any():
            return None
        room = self.peak_bytes + self._budget.room_bytes + self._budget.asked_bytes + more_bytes
        ratio = float(((room - fixed[grows]) / (growing[grows] + asked)).min())
        return min(max(ratio, 0.0), MOST_BATCH_RATIO)

    def saving(self, change: str, stays: Stays, call: RepeatedCall | None = None) -> Saving:
        """Return what a change saves, given what stays of the parts that it concerns."""
        ends = [{word: kept[end] for word, kept in stays.items()} for end in (0, 1)]
        low, high = sorted(map(self.saved_bytes, ends))
        place, calls = (call.location, call.calls) if call else (None, 0)
        return Saving(change, low, high, self.batch_ratio(ends[1]), place, calls)


CHANGES: tuple[tuple[str, Stays], ...] = (
    # Under autocast matrix products and what they save are half as large; norms, softmax and losses stay fp32.
    ("mixed_precision", {"activation": (0.75, 0.5)}),
    # Blocks of equal size: their inputs and one block's inside stay; a transformer block holds 4 to 10 times its input.
    ("checkpointing", {"activation": (0.5, 0.2)}),
    # A fused kernel writes no scores (FlashAttention, 2022); at most, all blocks of their size are such.
    ("fused_attention", {"score_sized": (1.0, 0.0), "scores": (0.0, 0.0)}),
    # What no backward pass used is not made to stay at all.
    ("inference_mode", {"dropped": (0.0, 0.0)}),
    # Two fp32 moments become two bytes and a scale per 256 or 2048 values (bitsandbytes, torchao).
    ("optimizer_8bit", {"optimizer_state": (0.27, 0.25)}),
    # One kernel per group of parameters needs no list of intermediate tensors.
    ("fused_optimizer", {"optimizer_scratch": (0.5, 0.0)}),
    # FSDP shards parameters, gradients and state; ZeRO 1 only the state.
    ("shard_2", {"parameter": (1.0, 0.5), "gradient": (1.0, 0.5), "optimizer_state": (0.5, 0.5)}),
    ("shard_8", {"parameter": (1.0, 0.125), "gradient": (1.0, 0.125), "optimizer_state": (0.125, 0.125)}),
    ("half_batch", {"activation": (0.55, 0.5), "input": (0.5, 0.5), "asked": (0.5, 0.5)}),
    # Logits and their gradient for one eighth of the tokens at a time.
    ("chunked_loss", {"logits": (0.25, 0.125)}),
)
EVERY_BYTES = 1 << 20
"""Smaller savings are not worth a line."""


def blocks_in_use(blocks: Allocations, masks: Mapping[str, BoolArray], growing: BoolArray, budget: Budget) -> InUse:
    """Return the memory of blocks over time.

    Args:
        blocks: All blocks.
        masks: Part → which blocks it has.
        growing: Which blocks grow with the batch.
        budget: What they are held against.
    """

    def curves(stays: Mapping[str, float]) -> tuple[IntArray, IntArray]:
        weight: FloatArray = np.ones(len(blocks.size_bytes))
        for word, kept in stays.items():
            if word in masks:
                weight[masks[word]] = kept
        size = np.round(blocks.size_bytes * weight).astype(np.int64)
        fixed, grown = (blocks.in_use_bytes(np.where(mask, size, 0)) for mask in (~growing, growing))
        if budget.failure is not None:
            return fixed[[budget.failure]], grown[[budget.failure]]
        return fixed, grown

    return InUse(curves, budget)


def timeline_in_use(timeline: MemoryTimeline) -> InUse:
    """Return the memory of an exported timeline, which knows categories but no blocks."""
    grows = np.isin(CATEGORIES, GROWING)

    def curves(stays: Mapping[str, float]) -> tuple[IntArray, IntArray]:
        size = timeline.size_bytes * [stays.get(word, 1.0) for word in CATEGORIES]
        fixed, grown = (np.round(size[:, mask].sum(axis=1)).astype(np.int64) for mask in (~grows, grows))
        return fixed, grown

    return InUse(curves, Budget())


def savings(
    in_use: InUse, present: Container[str], call: RepeatedCall | None = None, idle_bytes: int = 0
) -> tuple[Saving, ...]:
    """Return what each change saves at the peak, the largest first; the peak may move to another moment.

    Args:
        in_use: The memory over time.
        present: Parts that there are.
        call: The line whose modules could be recomputed.
        idle_bytes: Reserved and not in use at the peak, between blocks that are.
    """
    concerned = [(change, {word: kept for word, kept in stays.items() if word in present}) for change, stays in CHANGES]
    found = [in_use.saving(change, stays) for change, stays in concerned if stays]
    if call is not None:
        found.append(in_use.saving("checkpointing_calls", {"called": call.stays_share}, call))
    if idle_bytes:
        found.append(Saving("expandable_segments", 0, idle_bytes, in_use.batch_ratio({}, idle_bytes)))
    kept = [one for one in found if one.high_bytes >= EVERY_BYTES]
    return tuple(sorted(kept, key=lambda one: (-one.high_bytes, one.change)))
