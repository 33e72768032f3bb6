"""Every block that lived while the allocator's history ran: from when to when, how large, asked for and freed where."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from uncork.records import dataclass
from uncork.snapshot import ACTIONS, STATES, MemorySnapshot

IntArray = npt.NDArray[np.int64]

ALLOC, REQUESTED, COMPLETED, FAILED = map(ACTIONS.index, ("alloc", "free_requested", "free_completed", "oom"))
GROWS = tuple(ACTIONS.index(word) for word in ("segment_alloc", "segment_map"))
SHRINKS = tuple(ACTIONS.index(word) for word in ("segment_free", "segment_unmap"))


@dataclass(frozen=True, eq=False)
class Allocations:
    """The blocks of one device, one row each; moments are places in its list of actions.

    Args:
        birth: Action that made each block, -1 for those older than the history, int64 (blocks,).
        death: Action that freed it, `actions` for those never freed, int64 (blocks,).
        address: Where each lies, int64 (blocks,).
        size_bytes: What the program asked for, int64 (blocks,).
        stack: Where it was asked for, 0 where unknown, int64 (blocks,).
        freed_by: Where it was freed, 0 where unknown or never, int64 (blocks,).
        actions: Number of actions of the device.
        failure: Place of the last failed request among them, None where none failed.
        reserved_end_bytes: Reserved at the end.
        reserved_change_bytes: Change of the reserved memory by each action, int64 (actions,).
    """

    birth: IntArray
    death: IntArray
    address: IntArray
    size_bytes: IntArray
    stack: IntArray
    freed_by: IntArray
    actions: int
    failure: int | None
    reserved_end_bytes: int
    reserved_change_bytes: IntArray

    def in_use_bytes(self, size_bytes: IntArray) -> IntArray:
        """Return the bytes in use before the first action and after each, shape (actions + 1,).

        Args:
            size_bytes: Size of each block: its own, or what it would be after a change.
        """
        change = np.zeros(self.actions + 2, np.int64)
        np.add.at(change, self.birth + 1, size_bytes)
        np.subtract.at(change, self.death + 1, size_bytes)
        in_use: IntArray = np.cumsum(change)[: self.actions + 1]
        return in_use

    @cached_property
    def allocated_bytes(self) -> IntArray:
        """Return the allocated bytes before the first action and after each, shape (actions + 1,)."""
        return self.in_use_bytes(self.size_bytes)

    @cached_property
    def reserved_bytes(self) -> IntArray:
        """Return the reserved bytes before the first action and after each, shape (actions + 1,)."""
        change = np.concatenate([[0], np.cumsum(self.reserved_change_bytes)])
        reserved: IntArray = np.maximum(self.reserved_end_bytes - change[-1] + change, 0).astype(np.int64)
        return reserved

    @property
    def peak(self) -> int:
        """Return the place in `allocated_bytes` where most is in use, the first of them."""
        return int(self.allocated_bytes.argmax())

    def live(self, moment: int) -> IntArray:
        """Return the blocks in use at a place of `allocated_bytes`."""
        return np.flatnonzero((self.birth < moment) & (self.death >= moment))


def main_device(snapshot: MemorySnapshot) -> int:
    """Return the device on which a request failed last, else that with most reserved memory, else with most actions."""
    segments, trace = snapshot.segments, snapshot.trace
    failed = np.flatnonzero(trace.action == FAILED)
    if len(failed):
        latest = failed[trace.time_ns[failed].argmax()] if (trace.time_ns[failed] >= 0).all() else failed[-1]
        return int(trace.device[latest])
    if len(segments.device) and int(segments.size_bytes.sum()):
        devices, back = np.unique(segments.device, return_inverse=True)
        return int(devices[np.bincount(back, segments.size_bytes).argmax()])
    return int(np.bincount(np.maximum(trace.device, 0)).argmax()) if len(trace) else 0


def allocations(snapshot: MemorySnapshot, device: int) -> Allocations:
    """Return the blocks of a device: from its actions, and from the state at the end where no action tells of them."""
    trace = snapshot.trace
    mine = np.flatnonzero(trace.device == device)
    action, size = trace.action[mine], trace.size_bytes[mine]
    opened = _lives(action, trace.address[mine])
    end = _older(snapshot, device, trace.address[mine], opened, len(mine))
    birth, death = np.concatenate([opened[0], end[0]]), np.concatenate([opened[1], end[1]])
    stack_of = np.append(trace.stack[mine], 0)
    made = np.where(birth >= 0, birth, np.minimum(death, len(mine) - 1)) if len(mine) else birth
    count = len(opened[0])
    sizes = np.concatenate([size[made[:count]] if count else np.empty(0, np.int64), end[2]])
    change = np.where(np.isin(action, GROWS), size, 0) - np.where(np.isin(action, SHRINKS), size, 0)
    segments = snapshot.segments
    return Allocations(
        birth=birth,
        death=death,
        address=np.concatenate([trace.address[mine][made[:count]] if count else np.empty(0, np.int64), end[4]]),
        size_bytes=sizes.astype(np.int64),
        stack=np.concatenate([np.where(opened[0] >= 0, stack_of[opened[0]], 0), end[3]]).astype(np.int64),
        freed_by=np.where(death < len(mine), stack_of[np.minimum(death, len(mine))], 0).astype(np.int64),
        actions=len(mine),
        failure=int(failed[-1]) if len(failed := np.flatnonzero(action == FAILED)) else None,
        reserved_end_bytes=int(segments.size_bytes[segments.device == device].sum()),
        reserved_change_bytes=change.astype(np.int64),
    )


def _lives(action: IntArray, address: IntArray) -> tuple[IntArray, IntArray]:
    """Return (birth, death) of the blocks that the actions tell of.

    A block lives until it is first freed: a request and its completion are one free. A free that no allocation came
    before belongs to a block older than the history; an address allocated anew ends its last block.
    """
    rows = np.flatnonzero(np.isin(action, (ALLOC, REQUESTED, COMPLETED)))
    rows = rows[np.argsort(address[rows], kind="stable")]
    is_alloc = action[rows] == ALLOC
    same = np.diff(address[rows], prepend=-1) == 0
    same[:1] = False
    ends_here = np.append(same[1:], False)[: len(rows)]
    following = np.append(rows[1:], len(action))[: len(rows)]
    death = np.where(ends_here, following, len(action))[is_alloc]
    older = rows[~is_alloc & ~same]
    return (
        np.concatenate([rows[is_alloc], np.full(len(older), -1, np.int64)]).astype(np.int64),
        np.concatenate([death, older]).astype(np.int64),
    )


def _older(
    snapshot: MemorySnapshot, device: int, address: IntArray, opened: tuple[IntArray, IntArray], actions: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return (birth, death, size, stack, address) of the blocks in use at the end that no action tells of."""
    blocks, segments = snapshot.blocks, snapshot.segments
    on_device = segments.device[blocks.segment] == device if len(segments.device) else np.zeros(0, bool)
    used = np.flatnonzero(on_device & (blocks.state == STATES.index("active_allocated")))
    never_freed = (opened[1] == actions) & (opened[0] >= 0)
    known = address[opened[0][never_freed]]
    used = used[~np.isin(blocks.address[used], known)]
    return (
        np.full(len(used), -1, np.int64),
        np.full(len(used), actions, np.int64),
        blocks.requested_bytes[used],
        blocks.stack[used],
        blocks.address[used],
    )
