"""OutOfMemory: a request for device memory that failed, and how what was free lay."""

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from uncork.measure.allocations import ALLOC, COMPLETED, GROWS, REQUESTED, SHRINKS, Allocations
from uncork.measure.memory_what_if import Saving
from uncork.measure.owners import Owner, StackKinds
from uncork.records import dataclass
from uncork.snapshot import STATES, MemorySnapshot

ROUNDED_BYTES = 512
"""The allocator gives out multiples of it (``kMinBlockSize``)."""
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FreePieces:
    """Free memory within the reserve at the end of a snapshot.

    Args:
        idle_bytes: All of it.
        split_bytes: What lies inside segments that are in use: no other process, no ``empty_cache`` and no larger
            request can have it.
        pieces: In how many blocks.
        largest_bytes: The largest of them.
    """

    idle_bytes: int
    split_bytes: int
    pieces: int
    largest_bytes: int


@dataclass(frozen=True)
class OutOfMemory:
    """A request that failed.

    Args:
        requested_bytes: What was asked for.
        device_free_bytes: What the driver had left, None where the snapshot does not say.
        free: How the reserve's free memory lay then.
        owner: Who asked.
        phase: What was running: one of `uncork.measure.owners.PHASES`.
        moment: When, as a place in `Allocations.allocated_bytes`.
        held: Category → bytes in use then.
    """

    requested_bytes: int
    device_free_bytes: int | None
    free: FreePieces
    owner: Owner
    phase: str
    moment: int
    held: Mapping[str, int] = field(default_factory=dict)

    @property
    def held_bytes(self) -> int:
        """Return what was in use then."""
        return sum(self.held.values())

    @property
    def in_pieces(self) -> bool:
        """Return whether enough was free in the reserve, though not in one piece."""
        return self.free.largest_bytes < self.requested_bytes <= self.free.idle_bytes

    @property
    def short_bytes(self) -> int | None:
        """Return what was missing on the device; None where nobody says what it had left, or it was not the device.

        The allocator gives whole idle segments back before it fails: what is idle then lies between blocks in use.
        """
        if self.device_free_bytes is None or self.limited:
            return None
        return self.requested_bytes - self.device_free_bytes

    def met_by(self, saving: Saving) -> bool | None:
        """Return whether a change alone would have let the request through; None where it is not known."""
        if saving.change == "expandable_segments":
            return self.in_pieces
        return None if self.short_bytes is None else saving.low_bytes >= self.short_bytes

    @property
    def limited(self) -> bool:
        """Return whether the device had enough: then a limit of the program's own was reached."""
        return self.device_free_bytes is not None and self.device_free_bytes >= self.requested_bytes


def free_pieces(snapshot: MemorySnapshot, device: int) -> FreePieces:
    """Return how a device's free memory lies at the end."""
    blocks, segments = snapshot.blocks, snapshot.segments
    if not len(blocks.segment):
        return FreePieces(0, 0, 0, 0)
    here = segments.device[blocks.segment] == device
    free = here & (blocks.state == STATES.index("inactive"))
    in_use = np.zeros(len(segments.device), bool)
    in_use[blocks.segment[here & ~free]] = True
    size = blocks.size_bytes[free]
    return FreePieces(
        idle_bytes=int(size.sum()),
        split_bytes=int(blocks.size_bytes[free & in_use[blocks.segment]].sum()),
        pieces=len(size),
        largest_bytes=int(size.max()) if len(size) else 0,
    )


def _pieces_at(snapshot: MemorySnapshot, device: int, blocks: Allocations, moment: int) -> FreePieces:
    """Return how free memory lay at a moment: the reserve of then, less the blocks that were in use in it.

    A snapshot written when the exception is handled is later than the failure: much is freed by then.
    """
    trace, segments = snapshot.trace, snapshot.segments
    here = segments.device == device
    reserve = dict(zip(segments.address[here].tolist(), segments.size_bytes[here].tolist(), strict=True))
    mine = np.flatnonzero(trace.device == device)[moment:]
    for action, address, size in zip(
        trace.action[mine][::-1].tolist(), trace.address[mine][::-1].tolist(), trace.size_bytes[mine][::-1].tolist(),
        strict=True,
    ):  # fmt: skip
        if action in GROWS:
            reserve.pop(address, None)
        elif action in SHRINKS:
            reserve[address] = size
    start = np.array(sorted(reserve), np.int64)
    live = blocks.live(moment)
    live = live[np.argsort(blocks.address[live], kind="stable")]
    bounds = np.searchsorted(blocks.address[live], np.append(start, np.iinfo(np.int64).max)).tolist()
    pieces: list[int] = []
    split = 0
    for begin, first, last in zip(start.tolist(), bounds, bounds[1:], strict=False):
        end, at, found = begin + reserve[begin], begin, []
        rows = live[first:last]
        rows = rows[blocks.address[rows] < end]
        for address, size in zip(blocks.address[rows].tolist(), blocks.size_bytes[rows].tolist(), strict=True):
            found.append(address - at)
            at = address + -(-size // ROUNDED_BYTES) * ROUNDED_BYTES
        found = [size for size in (*found, end - at) if size > 0]
        pieces += found
        split += sum(found) if len(rows) else 0
    return FreePieces(sum(pieces), split, len(pieces), max(pieces, default=0))


def last_failure(
    snapshot: MemorySnapshot, mine: IntArray, blocks: Allocations, free: FreePieces, kinds: StackKinds
) -> OutOfMemory | None:
    """Return the last failed request of a device, None where none failed.

    Args:
        snapshot: All of it.
        mine: The device's actions.
        blocks: Its blocks.
        free: How its free memory lies at the end.
        kinds: What its stacks are part of.
    """
    trace, moment = snapshot.trace, blocks.failure
    if moment is None:
        return None
    last = int(mine[moment])
    size, stack, left = int(trace.size_bytes[last]), int(trace.stack[last]), int(trace.device_free_bytes[last])
    owner = Owner("unknown", kinds.place(stack), size, 1)
    if np.isin(trace.action[mine[moment:]], (REQUESTED, COMPLETED, ALLOC, *GROWS, *SHRINKS)).any():
        free = _pieces_at(snapshot, int(trace.device[last]), blocks, moment)
    return OutOfMemory(size, left if left >= 0 else None, free, owner, kinds.phase(stack), moment)
