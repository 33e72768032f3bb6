"""SnapshotMemory: who held the device's memory at the peak and at the end, and why more did not fit."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.allocations import ALLOC, GROWS, SHRINKS
from uncork.measure.device_history import DeviceHistory, choices, holders
from uncork.measure.failed_request import FreePieces, OutOfMemory
from uncork.measure.fixed_time import fixed_share, time_share
from uncork.measure.memory_views import curve, growth_bytes, owner_rows, saving_row, segments_map, timeline_curve
from uncork.measure.memory_what_if import Saving, savings, timeline_in_use
from uncork.measure.owners import Owner
from uncork.records import dataclass
from uncork.snapshot import CATEGORIES, MemorySnapshot, MemoryTimeline

IntArray = npt.NDArray[np.int64]

WORTH_BYTES = 1 << 30
"""Under this much reserved memory nobody runs out of it."""
STATE_SHARE = 1 / 3
PEAK_SHARE = 0.5
IDLE_RATIO = 1.3
KEPT_SHARE = 0.2
"""Optimiser state of the peak, more at the peak than before, reserved over in use, kept at the end of what is in use:
above these the rules of memory speak."""


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
        capacity_bytes: Memory of the device, None where neither the recording nor a failed request says.
        expandable: Whether segments can grow already.
        free: How free memory lies at the end.
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
        stopped: Whether the program ended with an error, as a failed request ends most.
        savings: What other choices would have saved.
        batch_ratio: How many times the batch would fit at most as things are: on the device, after a failure or where
            nobody says how large the device is into what was used.
        fixed_share: Share of a step that does not grow with the batch, None without timed steps.
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
    capacity_bytes: int | None = None
    expandable: bool = False
    free: FreePieces | None = None
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
    stopped: bool = False
    savings: tuple[Saving, ...] = ()
    batch_ratio: float | None = None
    fixed_share: float | None = None
    views: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rank: Rank) -> "SnapshotMemory":
        """Return what a rank's snapshot or memory timeline says."""
        held = rank.recording.snapshot
        if isinstance(held, MemorySnapshot):
            return _of_snapshot(held, rank)
        if isinstance(held, MemoryTimeline):
            return _of_timeline(held, rank)
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
                "peak_ns", "reserved_bytes", "reserved_peak_bytes", "idle_at_peak_bytes", "capacity_bytes",
                "kept_bytes", "segment_allocs", "segment_frees", "allocs",
            )
        }  # fmt: skip
        whole = max(self.peak_bytes, 1)
        fits = self.batch_ratio if self.capacity_bytes and not self.oom else None
        parts = sorted(self.peak_categories.items(), key=lambda item: -item[1])
        return {
            **plain,
            "split_idle_bytes": self.free and self.free.split_bytes,
            "idle_pieces": self.free and self.free.pieces,
            "largest_idle_bytes": self.free and self.free.largest_bytes,
            "batch_ratio": fits,
            "batch_time_share": time_share(self.fixed_share, fits),
            "step_bytes": list(self.step_bytes),
            "growth_bytes": growth_bytes(self.step_bytes),
            "categories": [{"category": word, "bytes": size, "share": size / whole} for word, size in parts if size],
            "largest": owner_rows(self.peak_owners, whole),
            "kept": owner_rows(self.kept_owners, max(self.kept_bytes, 1)),
            "oom": self._oom_content(),
            "what_if": [saving_row(one, self.oom.met_by(one) if self.oom else None) for one in self.savings],
            **self.views,
        }

    def _oom_content(self) -> Mapping[str, Any] | None:
        if self.oom is None:
            return None
        return {
            "requested_bytes": self.oom.requested_bytes,
            "device_free_bytes": self.oom.device_free_bytes,
            "short_bytes": self.oom.short_bytes,
            "limited": self.oom.limited,
            "idle_bytes": self.oom.free.idle_bytes,
            "pieces": self.oom.free.pieces,
            "largest_bytes": self.oom.free.largest_bytes,
            "phase": self.oom.phase,
            "owner": owner_rows((self.oom.owner,), max(self.oom.requested_bytes, 1))[0],
        }


def _of_snapshot(snapshot: MemorySnapshot, rank: Rank) -> SnapshotMemory:
    history = DeviceHistory(snapshot)
    device, blocks, peak, time_ns = history.device, history.blocks, history.blocks.peak, history.time_ns
    return SnapshotMemory(
        source="snapshot",
        device=device,
        has_history=snapshot.has_history and blocks.actions > 0,
        allocated_bytes=int(blocks.allocated_bytes[-1]),
        start_bytes=int(blocks.allocated_bytes[0]),
        peak_bytes=int(blocks.allocated_bytes[peak]),
        peak_phase=history.kinds.phase(int(snapshot.trace.stack[history.mine[peak - 1]])) if peak else None,
        peak_ns=int(time_ns[peak - 1]) if peak > 0 and time_ns[peak - 1] >= 0 else None,
        reserved_bytes=blocks.reserved_end_bytes,
        reserved_peak_bytes=int(blocks.reserved_bytes.max()),
        idle_at_peak_bytes=history.idle_at_peak_bytes,
        expandable=history.expandable,
        phases=history.phases,
        segment_allocs=int(np.isin(history.action, GROWS).sum()),
        segment_frees=int(np.isin(history.action, SHRINKS).sum()),
        allocs=int((history.action == ALLOC).sum()),
        step_bytes=_at_steps(history),
        fixed_share=fixed_share(rank),
        stopped=rank.recording.run is not None and bool(rank.recording.run.exit_code),
        views={"curve": curve(blocks, history.category, time_ns), "segments": segments_map(snapshot, device)},
        **holders(history),
        **choices(history, {one.index: one.memory_bytes for one in rank.recording.devices if one.memory_bytes}),
    )


def _of_timeline(timeline: MemoryTimeline, rank: Rank) -> SnapshotMemory:
    total = timeline.size_bytes.sum(axis=1)
    peak = int(total.argmax())
    seen = zip(CATEGORIES, (timeline.size_bytes.max(axis=0) > 0).tolist(), strict=True)
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
        savings=savings(timeline_in_use(timeline), {word for word, used in seen if used}),
        fixed_share=fixed_share(rank),
        views={"curve": timeline_curve(timeline)},
    )


def _at_steps(history: DeviceHistory) -> tuple[int, ...]:
    """Return what is in use as each optimiser step begins, by the program's regions, else by the step's own blocks."""
    snapshot, blocks, time_ns = history.snapshot, history.blocks, history.time_ns
    marks = [when for name, end, when in snapshot.annotations if end == "start" and name.startswith("Optimizer.step#")]
    if marks and len(time_ns) and time_ns[0] >= 0:
        # The same device may list actions of several streams: times are made to rise for the search.
        place = np.searchsorted(np.maximum.accumulate(time_ns), np.array(sorted(marks), np.int64))
    else:
        made = np.flatnonzero(history.action == ALLOC)
        in_step = history.kinds.optimizer[snapshot.trace.stack[history.mine[made]]]
        place = made[in_step & ~np.concatenate([[True], in_step[:-1]])] if len(made) else made
    return tuple(blocks.allocated_bytes[place].tolist())
