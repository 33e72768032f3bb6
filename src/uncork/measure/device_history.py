"""DeviceHistory: what one device's allocator did and whose its blocks are; who holds them; what other choices save."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from uncork.measure.allocations import allocations, main_device
from uncork.measure.failed_request import OutOfMemory, free_pieces, last_failure
from uncork.measure.memory_what_if import FULL_SHARE, GROWING, Budget, blocks_in_use, savings
from uncork.measure.owners import StackKinds, categories, owners
from uncork.measure.repeated_calls import repeated_call
from uncork.snapshot import CATEGORIES, MemorySnapshot

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class DeviceHistory:
    """What one device's allocator did, and whose its blocks are."""

    def __init__(self, snapshot: MemorySnapshot) -> None:
        self.snapshot = snapshot
        self.device = main_device(snapshot)
        self.blocks = allocations(snapshot, self.device)
        self.kinds = StackKinds(snapshot.stacks)
        self.category = categories(self.blocks, self.kinds)
        self.mine = np.flatnonzero(snapshot.trace.device == self.device)
        self.action, self.time_ns = snapshot.trace.action[self.mine], snapshot.trace.time_ns[self.mine]
        made = np.unique(self.blocks.stack[self.blocks.birth >= 0])
        self.phases = tuple(sorted({self.kinds.phase(int(stack)) for stack in made}))

    def of(self, word: str) -> BoolArray:
        """Return the blocks of a category."""
        found: BoolArray = self.category == CATEGORIES.index(word)
        return found

    def by_category(self, which: IntArray) -> dict[str, int]:
        """Return the bytes of some blocks by category."""
        sums = np.zeros(len(CATEGORIES), np.int64)
        np.add.at(sums, self.category[which], self.blocks.size_bytes[which])
        return dict(zip(CATEGORIES, sums.tolist(), strict=True))

    @cached_property
    def dropped(self) -> BoolArray:
        """Return the activations that no backward pass freed."""
        blocks = self.blocks
        return self.of("activation") & (blocks.death < blocks.actions) & ~self.kinds.engine[blocks.freed_by]

    @property
    def expandable(self) -> bool:
        """Return whether segments can grow already."""
        segments = self.snapshot.segments
        grows = bool(segments.expandable[segments.device == self.device].any())
        return grows or self.snapshot.settings.get("expandable_segments") == "True"

    @property
    def trains(self) -> bool:
        """Return whether a backward pass or an optimiser step was seen."""
        used = self.of("activation") & (self.blocks.death < self.blocks.actions) & ~self.dropped
        return not {"backward", "optimizer"}.isdisjoint(self.phases) or bool(used.any())

    @property
    def idle_at_peak_bytes(self) -> int:
        """Return what is reserved and not in use at the peak."""
        return max(int(self.blocks.reserved_bytes[self.blocks.peak] - self.blocks.allocated_bytes[self.blocks.peak]), 0)


def holders(history: DeviceHistory) -> dict[str, Any]:
    """Return who holds what: at the peak, and at the end of what was made since the beginning."""
    blocks, kinds, category = history.blocks, history.kinds, history.category
    live, left = blocks.live(blocks.peak), blocks.live(blocks.actions)
    kept = left[blocks.birth[left] >= 0]
    return {
        "peak_categories": history.by_category(live),
        "end_categories": history.by_category(left),
        "peak_owners": owners(blocks, live, category, kinds),
        "kept_owners": owners(blocks, kept, category, kinds),
        "kept_bytes": int(blocks.size_bytes[kept].sum()),
        "built_bytes": int(blocks.size_bytes[kept[history.of("parameter")[kept]]].sum()),
        "logits_bytes": int(blocks.size_bytes[live[kinds.logits[blocks.stack[live]]]].sum()),
        "dropped_bytes": int(blocks.size_bytes[live[history.dropped[live]]].sum()),
    }


def choices(history: DeviceHistory, memory_bytes: Mapping[int, int]) -> dict[str, Any]:
    """Return what failed, what other choices would have saved, and how much larger a batch would fit.

    Args:
        history: The device's.
        memory_bytes: Device index → its size, where the recording says it.
    """
    blocks, kinds = history.blocks, history.kinds
    free = free_pieces(history.snapshot, history.device)
    failed = last_failure(history.snapshot, history.mine, blocks, free, kinds)
    if failed is not None:
        failed = replace(failed, held=history.by_category(blocks.live(failed.moment)))
    capacity = memory_bytes.get(history.device) or _capacity_bytes(failed, blocks.reserved_bytes)
    call = repeated_call(blocks, failed.moment if failed else blocks.peak, history.category, kinds.stacks)
    step = kinds.optimizer[blocks.stack]
    masks = {word: history.of(word) for word in CATEGORIES} | {
        "optimizer_scratch": step & (blocks.death < blocks.actions),
        "logits": kinds.logits[blocks.stack],
        **_scores(history),
        "dropped": history.dropped & (not history.trains),
        "called": call.blocks if call else np.zeros(len(step), bool),
    }
    growing = np.isin(history.category, [CATEGORIES.index(word) for word in GROWING]) & ~step
    budget = _budget(failed, capacity, int(blocks.reserved_bytes.max()))
    in_use = blocks_in_use(blocks, masks, growing, budget)
    present = {word for word, mask in masks.items() if mask.any()} | ({"asked"} if budget.asked_bytes else set())
    idle = 0 if history.expandable else history.idle_at_peak_bytes
    return {
        "free": free,
        "oom": failed,
        "capacity_bytes": capacity,
        "savings": savings(in_use, present, call, idle if blocks.actions else 0),
        "batch_ratio": in_use.batch_ratio({}),
    }


def _scores(history: DeviceHistory) -> dict[str, BoolArray]:
    """Return the scores of attention written by hand, and all blocks of their size: what backward makes of them too."""
    blocks = history.blocks
    made = history.of("activation") & history.kinds.scores[blocks.stack]
    if not made.any():
        return {}
    sizes, back = np.unique(blocks.size_bytes[made], return_inverse=True)
    size = sizes[np.bincount(back.reshape(-1), blocks.size_bytes[made]).argmax()]
    alike = (blocks.size_bytes == size) & (history.of("activation") | history.of("temporary") | history.of("gradient"))
    return {"scores": made & alike, "score_sized": alike}


def _capacity_bytes(failed: OutOfMemory | None, reserved_bytes: IntArray) -> int | None:
    """Return the device's size as a failed request shows it: what was free, and what was reserved at that moment."""
    if failed is None or failed.device_free_bytes is None:
        return None
    return failed.device_free_bytes + int(reserved_bytes[failed.moment])


def _budget(failed: OutOfMemory | None, capacity_bytes: int | None, reserved_bytes: int) -> Budget:
    """Return what memory in use is held against: all there was at a failure, most of the device, or what is used."""
    if failed is not None:
        asked = failed.requested_bytes if failed.phase in ("forward", "backward", "generation") else 0
        left = 0 if failed.limited else failed.device_free_bytes or 0
        return Budget(left - failed.requested_bytes, failed.moment, asked)
    return Budget(max(int(FULL_SHARE * capacity_bytes) - reserved_bytes, 0) if capacity_bytes else 0)
