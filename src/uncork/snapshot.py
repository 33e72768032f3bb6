"""MemorySnapshot and MemoryTimeline: what the allocator wrote down, as columns with stacks kept once."""

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import numpy.typing as npt

from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]

ACTIONS = (
    "other", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "snapshot", "oom",
)  # fmt: skip
"""What the allocator did, as it spells it; words that are not here become ``other``."""
STATES = ("inactive", "active_allocated", "active_awaiting_free")
"""What a block is: free for reuse, in use, or given back while a stream may still use it."""
CATEGORIES = (
    "parameter", "optimizer_state", "input", "temporary", "activation", "gradient", "autograd_detail", "unknown",
)  # fmt: skip
"""What memory is for. The first seven in the order of ``export_memory_timeline`` (torch 2.13, ``_memory_profiler``)."""


@dataclass(frozen=True, eq=False)
class Stacks:
    """Call stacks, each distinct stack and frame once; innermost frame first.

    Args:
        function: Function of each frame, length (frames,).
        file: Source file of each frame (``??`` where unknown), length (frames,).
        line: Line of each frame, int64 (frames,).
        frame: Frames of all stacks one after another, int64.
        offsets: Where each stack begins in `frame`, and the end of the last, int64 (stacks + 1,). Stack 0 is empty.
    """

    function: tuple[str, ...]
    file: tuple[str, ...]
    line: IntArray
    frame: IntArray
    offsets: IntArray

    def __len__(self) -> int:
        """Return the number of distinct stacks."""
        return len(self.offsets) - 1

    def frames(self, stack: int) -> IntArray:
        """Return the frames of a stack, innermost first."""
        return self.frame[self.offsets[stack] : self.offsets[stack + 1]]

    def any_frame(self, fits: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return for each stack whether one of its frames fits.

        Args:
            fits: Shape (frames,).
        """
        hits = np.concatenate([[0], np.cumsum(fits[self.frame])])
        found: npt.NDArray[np.bool_] = hits[self.offsets[1:]] > hits[self.offsets[:-1]]
        return found


@dataclass(frozen=True, eq=False)
class Segments:
    """Memory that the allocator has from the driver, one row per segment.

    Args:
        device: Device index, int64 (segments,).
        address: Start, int64 (segments,).
        size_bytes: Size, int64 (segments,).
        stream: Stream it belongs to, int64 (segments,).
        small: Whether it serves requests under 1 MiB, bool (segments,).
        expandable: Whether it can grow, bool (segments,).
    """

    device: IntArray
    address: IntArray
    size_bytes: IntArray
    stream: IntArray
    small: npt.NDArray[np.bool_]
    expandable: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Parts of the segments, one row per block.

    Args:
        segment: Row of the segment, int64 (blocks,).
        address: Start, int64 (blocks,).
        size_bytes: Size, int64 (blocks,).
        requested_bytes: What the program asked for, before rounding up, int64 (blocks,).
        state: Index in `STATES`, int64 (blocks,).
        stack: Where it was asked for: index of a stack, 0 where unknown, int64 (blocks,).
    """

    segment: IntArray
    address: IntArray
    size_bytes: IntArray
    requested_bytes: IntArray
    state: IntArray
    stack: IntArray


@dataclass(frozen=True, eq=False)
class AllocatorTrace:
    """What the allocator did, in order, one row per action.

    Args:
        device: Device index, int64 (actions,).
        action: Index in `ACTIONS`, int64 (actions,).
        address: Address concerned, int64 (actions,).
        size_bytes: Bytes asked for, int64 (actions,).
        stream: Stream, int64 (actions,).
        time_ns: When, since the epoch; -1 where the snapshot does not say (torch before 2.2), int64 (actions,).
        stack: Index of the stack, int64 (actions,).
        device_free_bytes: At an ``oom``: what the driver had left; else -1, int64 (actions,).
    """

    device: IntArray
    action: IntArray
    address: IntArray
    size_bytes: IntArray
    stream: IntArray
    time_ns: IntArray
    stack: IntArray
    device_free_bytes: IntArray

    def __len__(self) -> int:
        """Return the number of actions."""
        return len(self.action)


@dataclass(frozen=True, eq=False)
class MemorySnapshot:
    """The state of the caching allocator, and what led to it.

    Args:
        segments: Reserved memory.
        blocks: Its parts.
        trace: What happened since the history was switched on.
        stacks: The stacks that blocks and trace refer to.
        has_history: Whether the snapshot has a place for the history (a plain list of segments has none).
        annotations: Named regions the program marked: (name, start or end, time since the epoch in ns).
        settings: The allocator's settings, as text.
    """

    segments: Segments
    blocks: Blocks
    trace: AllocatorTrace
    stacks: Stacks
    has_history: bool
    annotations: tuple[tuple[str, str, int], ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class MemoryTimeline:
    """Memory by category over time, as ``export_memory_timeline`` writes it.

    Args:
        time_ns: Moments, int64 (moments,).
        size_bytes: Bytes in use, int64 (moments, categories), in the order of `CATEGORIES`.
        device: Device named in the file, empty where it names none.
    """

    time_ns: IntArray
    size_bytes: IntArray
    device: str = ""
