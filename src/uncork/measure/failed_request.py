"""OutOfMemory: a request for device memory that failed, and how what was free lay."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from uncork.measure.owners import Owner, StackKinds
from uncork.snapshot import ACTIONS, STATES, MemorySnapshot

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
        free: How the reserve's free memory lay at the end of the snapshot, which is taken at the failure as a rule.
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
        """Return what was missing on the device; None where nobody says what it had left.

        The allocator gives whole idle segments back before it fails: what is idle then lies between blocks in use.
        """
        if self.device_free_bytes is None:
            return None
        return max(self.requested_bytes - self.device_free_bytes, 0)


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


def last_failure(snapshot: MemorySnapshot, mine: IntArray, free: FreePieces, kinds: StackKinds) -> OutOfMemory | None:
    """Return the last failed request of a device, None where none failed.

    Args:
        snapshot: All of it.
        mine: The device's actions.
        free: How its free memory lies.
        kinds: What its stacks are part of.
    """
    trace = snapshot.trace
    failed = mine[trace.action[mine] == ACTIONS.index("oom")]
    if not len(failed):
        return None
    last = int(failed[-1])
    size, stack, left = int(trace.size_bytes[last]), int(trace.stack[last]), int(trace.device_free_bytes[last])
    owner = Owner("unknown", kinds.place(stack), size, 1)
    moment = int(np.searchsorted(mine, last))
    return OutOfMemory(size, left if left >= 0 else None, free, owner, kinds.phase(stack), moment)
