"""SnapshotMemory: who held the device's memory at the peak and at the end, and why more did not fit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uncork.findings import Bottleneck
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.allocations import ALLOC, GROWS, SHRINKS, Allocations, allocations, main_device
from uncork.measure.memory_views import curve, owner_rows, segments_map, timeline_curve
from uncork.measure.memory_what_if import Saving, savings
from uncork.measure.owners import Owner, StackKinds, categories, owners
from uncork.snapshot import ACTIONS, CATEGORIES, STATES, MemorySnapshot, MemoryTimeline

IntArray = npt.NDArray[np.int64]

WORTH_BYTES = 1 << 30
"""Under this much reserved memory nobody runs out of it."""
STATE_SHARE = 1 / 3
PEAK_SHARE = 0.5
IDLE_RATIO = 1.3
KEPT_SHARE = 0.2
"""Optimiser state of allocated, peak over what was there before, reserved over allocated, kept at the end of what is
allocated: above these a snapshot speaks of memory."""


@dataclass(frozen=True)
class OutOfMemory:
    """A request that failed.

    Args:
        requested_bytes: What was asked for.
        device_free_bytes: What the driver had left, None where the snapshot does not say.
        idle_bytes: Reserved but unused at the end of the snapshot, which is taken at the failure as a rule.
        pieces: In how many free blocks.
        largest_bytes: The largest of them: what would have fitted.
        owner: Who asked.
    """

    requested_bytes: int
    device_free_bytes: int | None
    idle_bytes: int
    pieces: int
    largest_bytes: int
    owner: Owner


@dataclass(frozen=True, eq=False)
class SnapshotMemory(Measurement):
    """Memory of one device of one rank, from a snapshot or an exported timeline; None: the file does not say.

    Args:
        source: ``snapshot`` or ``timeline``.
        device: Device index.
        has_history: Whether it is known what happened, not only how it ended.
        allocated_bytes: In use at the end.
        start_bytes: In use before the first action.
        peak_bytes: Most in use at once.
        peak_phase: What was running then: one of `uncork.measure.owners.PHASES`.
        peak_ns: When, None without times.
        reserved_bytes: Taken from the driver at the end.
        reserved_peak_bytes: Most taken.
        idle_at_peak_bytes: Reserved but not in use at the moment of the peak.
        split_idle_bytes: At the end, free blocks inside segments that are in use: no other process, no
            ``empty_cache`` and no larger request can have them.
        idle_pieces: Free blocks at the end.
        largest_idle_bytes: The largest of them.
        peak_categories: Category → bytes at the peak; sums to the peak.
        end_categories: Category → bytes at the end.
        peak_owners: The ten largest at the peak.
        kept_owners: Who made what is in use at the end and was not before, the largest first.
        kept_bytes: All of it.
        built_bytes: Parameters made while the history ran: a model that is built in it is no growth.
        logits_bytes: At the peak, asked for by losses and output layers.
        dropped_bytes: At the peak, activations that no backward pass used: the program let go of them.
        phases: Phases that made blocks.
        segment_allocs: Segments taken from the driver during the history.
        segment_frees: Segments given back.
        allocs: Blocks asked for during the history.
        step_bytes: In use at each optimiser step, where steps are marked.
        oom: The last request that failed.
        savings: What other choices would have saved.
        views: What is drawn: curve, segments.
    """

    section: ClassVar[str] = "memory"

    source: str
    device: int
    has_history: bool
    allocated_bytes: int
    start_bytes: int
    peak_bytes: int
    peak_categories: Mapping[str, int]
    end_categories: Mapping[str, int]
    peak_phase: str | None = None
    peak_ns: int | None = None
    reserved_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    idle_at_peak_bytes: int | None = None
    split_idle_bytes: int | None = None
    idle_pieces: int | None = None
    largest_idle_bytes: int | None = None
    peak_owners: tuple[Owner, ...] = ()
    kept_owners: tuple[Owner, ...] = ()
    kept_bytes: int = 0
    built_bytes: int = 0
    logits_bytes: int = 0
    dropped_bytes: int = 0
    phases: tuple[str, ...] = ()
    segment_allocs: int = 0
    segment_frees: int = 0
    allocs: int = 0
    step_bytes: tuple[int, ...] = ()
    oom: OutOfMemory | None = None
    savings: tuple[Saving, ...] = ()
    views: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rank: Rank) -> "SnapshotMemory":
        """Return what a rank's snapshot or memory timeline says."""
        held = rank.recording.snapshot
        if isinstance(held, MemorySnapshot):
            return _of_snapshot(held)
        if isinstance(held, MemoryTimeline):
            return _of_timeline(held)
        raise MissingEvidence("snapshot")

    def require_history(self) -> None:
        """Raise `MissingEvidence` where it is not known who asked for what and when."""
        if self.source != "snapshot":
            raise MissingEvidence("snapshot")
        if not self.has_history:
            raise MissingEvidence("history")

    def content(self) -> Mapping[str, Any]:
        """Return the report's section on memory."""
        plain = {
            name: getattr(self, name)
            for name in (
                "source", "device", "has_history", "allocated_bytes", "start_bytes", "peak_bytes", "peak_phase",
                "peak_ns", "reserved_bytes", "reserved_peak_bytes", "idle_at_peak_bytes", "split_idle_bytes",
                "idle_pieces", "largest_idle_bytes", "kept_bytes", "segment_allocs", "segment_frees", "allocs",
            )
        }  # fmt: skip
        whole = max(self.peak_bytes, 1)
        parts = sorted(self.peak_categories.items(), key=lambda item: -item[1])
        return {
            **plain,
            "step_bytes": list(self.step_bytes),
            "categories": [{"category": word, "bytes": size, "share": size / whole} for word, size in parts if size],
            "largest": owner_rows(self.peak_owners, whole),
            "kept": owner_rows(self.kept_owners, max(self.kept_bytes, 1)),
            "oom": self._oom_content(),
            "what_if": [
                {"change": one.change, "saved_low_bytes": one.low_bytes, "saved_high_bytes": one.high_bytes}
                for one in self.savings
            ],
            **self.views,
        }

    def _oom_content(self) -> Mapping[str, Any] | None:
        if self.oom is None:
            return None
        return {
            "requested_bytes": self.oom.requested_bytes,
            "device_free_bytes": self.oom.device_free_bytes,
            "idle_bytes": self.oom.idle_bytes,
            "pieces": self.oom.pieces,
            "largest_bytes": self.oom.largest_bytes,
            "owner": owner_rows((self.oom.owner,), max(self.oom.requested_bytes, 1))[0],
        }


def verdict_class(memory: SnapshotMemory) -> Bottleneck:
    """Return what a recording that holds only memory may conclude: memory, none, or undetermined."""
    if memory.oom is not None:
        return Bottleneck.MEMORY
    size = memory.reserved_bytes if memory.reserved_bytes is not None else memory.peak_bytes
    if size >= WORTH_BYTES and any(_signs(memory)):
        return Bottleneck.MEMORY
    return Bottleneck.NONE if memory.has_history and memory.allocs else Bottleneck.UNDETERMINED


def _signs(memory: SnapshotMemory) -> tuple[bool, ...]:
    """Return which signs of trouble hold, in the order of the constants above."""
    allocated = max(memory.allocated_bytes, 1)
    idle = (memory.reserved_bytes or 0) - memory.allocated_bytes
    kept = memory.kept_bytes - memory.built_bytes
    state = max(memory.end_categories.get("optimizer_state", 0) / allocated,
                memory.peak_categories.get("optimizer_state", 0) / max(memory.peak_bytes, 1))  # fmt: skip
    return (
        state > STATE_SHARE,
        memory.peak_bytes - memory.start_bytes - memory.built_bytes > PEAK_SHARE * max(memory.peak_bytes, 1),
        idle > (IDLE_RATIO - 1) * allocated and idle >= WORTH_BYTES,
        kept > KEPT_SHARE * allocated and kept >= WORTH_BYTES / 4,
    )


def _of_snapshot(snapshot: MemorySnapshot) -> SnapshotMemory:
    device = main_device(snapshot)
    blocks = allocations(snapshot, device)
    kinds = StackKinds(snapshot.stacks)
    category = categories(blocks, kinds)
    peak, live, left = blocks.peak, blocks.live(blocks.peak), blocks.live(blocks.actions)
    kept = left[blocks.birth[left] >= 0]
    mine = np.flatnonzero(snapshot.trace.device == device)
    action, time_ns = snapshot.trace.action[mine], snapshot.trace.time_ns[mine]
    scratch = kinds.optimizer[blocks.stack] & (blocks.death < blocks.actions)
    freed = (blocks.death < blocks.actions) & ~kinds.engine[blocks.freed_by]
    dropped = (category == CATEGORIES.index("activation")) & freed
    timed = peak > 0 and time_ns[peak - 1] >= 0
    return SnapshotMemory(
        source="snapshot",
        device=device,
        has_history=snapshot.has_history and blocks.actions > 0,
        allocated_bytes=int(blocks.allocated_bytes[-1]),
        start_bytes=int(blocks.allocated_bytes[0]),
        peak_bytes=int(blocks.allocated_bytes[peak]),
        peak_phase=kinds.phase(int(snapshot.trace.stack[mine[peak - 1]])) if peak else None,
        peak_ns=int(time_ns[peak - 1]) if timed else None,
        reserved_bytes=blocks.reserved_end_bytes,
        reserved_peak_bytes=int(blocks.reserved_bytes.max()),
        idle_at_peak_bytes=max(int(blocks.reserved_bytes[peak] - blocks.allocated_bytes[peak]), 0),
        **_idle(snapshot, device),
        peak_categories=_by_category(blocks, live, category),
        end_categories=_by_category(blocks, left, category),
        peak_owners=owners(blocks, live, category, kinds),
        kept_owners=owners(blocks, kept, category, kinds),
        kept_bytes=int(blocks.size_bytes[kept].sum()),
        built_bytes=int(blocks.size_bytes[kept[category[kept] == CATEGORIES.index("parameter")]].sum()),
        logits_bytes=int(blocks.size_bytes[live[kinds.logits[blocks.stack[live]]]].sum()),
        dropped_bytes=int(blocks.size_bytes[live[dropped[live]]].sum()),
        phases=tuple(sorted({kinds.phase(int(stack)) for stack in np.unique(blocks.stack[blocks.birth >= 0])})),
        segment_allocs=int(np.isin(action, GROWS).sum()),
        segment_frees=int(np.isin(action, SHRINKS).sum()),
        allocs=int((action == ALLOC).sum()),
        step_bytes=_at_steps(snapshot, blocks, time_ns),
        oom=_last_oom(snapshot, mine, device, kinds),
        savings=savings(blocks, category, {"optimizer_scratch": scratch, "logits": kinds.logits[blocks.stack]}),
        views={"curve": curve(blocks, category, time_ns), "segments": segments_map(snapshot, device)},
    )


def _of_timeline(timeline: MemoryTimeline) -> SnapshotMemory:
    total = timeline.size_bytes.sum(axis=1)
    peak = int(total.argmax())
    return SnapshotMemory(
        source="timeline",
        device=0,
        has_history=True,
        allocated_bytes=int(total[-1]),
        start_bytes=int(total[0]),
        peak_bytes=int(total[peak]),
        peak_ns=int(timeline.time_ns[peak]),
        peak_categories=dict(zip(CATEGORIES, timeline.size_bytes[peak].tolist(), strict=True)),
        end_categories=dict(zip(CATEGORIES, timeline.size_bytes[-1].tolist(), strict=True)),
        allocs=len(total),
        views={"curve": timeline_curve(timeline)},
    )


def _by_category(blocks: Allocations, which: IntArray, category: IntArray) -> dict[str, int]:
    sums = np.zeros(len(CATEGORIES), np.int64)
    np.add.at(sums, category[which], blocks.size_bytes[which])
    return dict(zip(CATEGORIES, sums.tolist(), strict=True))


def _idle(snapshot: MemorySnapshot, device: int) -> dict[str, int]:
    """Return how the free memory lies at the end."""
    blocks, segments = snapshot.blocks, snapshot.segments
    if not len(blocks.segment):
        return {"split_idle_bytes": 0, "idle_pieces": 0, "largest_idle_bytes": 0}
    here = segments.device[blocks.segment] == device
    free = here & (blocks.state == STATES.index("inactive"))
    in_use = np.zeros(len(segments.device), bool)
    in_use[blocks.segment[here & ~free]] = True
    size = blocks.size_bytes[free]
    return {
        "split_idle_bytes": int(blocks.size_bytes[free & in_use[blocks.segment]].sum()),
        "idle_pieces": len(size),
        "largest_idle_bytes": int(size.max()) if len(size) else 0,
    }


def _at_steps(snapshot: MemorySnapshot, blocks: Allocations, time_ns: IntArray) -> tuple[int, ...]:
    """Return what is in use at the start of each optimiser step that the program's regions mark."""
    marks = [when for name, end, when in snapshot.annotations if end == "start" and name.startswith("Optimizer.step#")]
    if not marks or not len(time_ns) or time_ns[0] < 0:
        return ()
    # The same device may list actions of several streams: times are made to rise for the search.
    place = np.searchsorted(np.maximum.accumulate(time_ns), np.array(sorted(marks), np.int64))
    return tuple(blocks.allocated_bytes[place].tolist())


def _last_oom(snapshot: MemorySnapshot, mine: IntArray, device: int, kinds: StackKinds) -> OutOfMemory | None:
    trace = snapshot.trace
    failed = mine[trace.action[mine] == ACTIONS.index("oom")]
    if not len(failed):
        return None
    last, idle = int(failed[-1]), _idle(snapshot, device)
    free = (snapshot.blocks.state == STATES.index("inactive")) & (
        snapshot.segments.device[snapshot.blocks.segment] == device
    )
    size, stack = int(trace.size_bytes[last]), int(trace.stack[last])
    return OutOfMemory(
        requested_bytes=size,
        device_free_bytes=int(trace.device_free_bytes[last]) if trace.device_free_bytes[last] >= 0 else None,
        idle_bytes=int(snapshot.blocks.size_bytes[free].sum()),
        pieces=idle["idle_pieces"],
        largest_bytes=idle["largest_idle_bytes"],
        owner=Owner("unknown", kinds.place(stack), size, 1),
    )
