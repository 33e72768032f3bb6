"""TraceMemory: allocated and reserved memory over time, from a trace's allocation events."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uncork.events import EventTable, Kind
from uncork.findings import Location
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.fixed_time import fixed_share, time_share
from uncork.measure.memory_views import chosen, growth_bytes, saving_row
from uncork.measure.memory_what_if import FULL_SHARE, MOST_BATCH_RATIO, Saving
from uncork.measure.trace_what_if import trace_savings
from uncork.measure.whereabouts import located
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]

CPU_TYPE = 0
"""``Device Type`` of host memory (c10::DeviceType); every other number is an accelerator's."""


@dataclass(frozen=True, eq=False)
class TraceMemory(Measurement):
    """Memory of the accelerator that allocates most, or of the host where none does.

    Args:
        on_device: Whether it is an accelerator's memory.
        device: Device index, -1 for the host.
        relative: The trace tells changes only (torch before 1.10): sizes count from the smallest.
        peak_bytes: Most allocated at once.
        peak_ns: When, since the first step began.
        peak_location: Operator, module and line that asked for the last block before the peak.
        keeper: Who asked for most of what was made in a step and is still there when a later one begins.
        kept_bytes: What that is, of all steps but the first, whose growth is set-up.
        reserved_peak_bytes: Most reserved, None where the trace does not say.
        start_bytes: Allocated before the first event.
        end_bytes: Allocated after the last one.
        step_bytes: Allocated when each step begins, int64 (steps,).
        step_peak_bytes: Most allocated within each step, int64 (steps,).
        asked_bytes_per_step: Sum of all blocks asked for, mean per step.
        allocs_per_step: Their number.
        marked: Whether the trace marks its steps.
        time_ns: Moments of the curve since the first step began, int64 (points,).
        allocated_bytes: The curve, int64 (points,).
        reserved_bytes: Likewise; empty where the trace does not say.
        known_bytes: Category → bytes that the recorder counted on the live objects (parameters, gradients, optimiser
            state); empty where it was not there, and for host memory, whose totals begin with the recording.
        capacity_bytes: Memory of the device, None where the recording does not say.
        fixed_share: Share of a step that does not grow with the batch, None without timed steps.
    """

    section: ClassVar[str] = "memory"

    on_device: bool
    device: int
    relative: bool
    peak_bytes: int
    peak_ns: int
    peak_location: Location
    reserved_peak_bytes: int | None
    start_bytes: int
    end_bytes: int
    step_bytes: IntArray
    step_peak_bytes: IntArray
    asked_bytes_per_step: int
    allocs_per_step: float
    marked: bool
    time_ns: IntArray
    allocated_bytes: IntArray
    reserved_bytes: IntArray
    keeper: Location = field(default_factory=Location)
    kept_bytes: int = 0
    known_bytes: Mapping[str, int] = field(default_factory=dict)
    capacity_bytes: int | None = None
    fixed_share: float | None = None

    @classmethod
    def of(cls, rank: Rank) -> "TraceMemory":
        """Return the memory of a rank; its deep window's where only that recorded memory."""
        found = [timeline for timeline in (rank.timeline, rank.deep) if len(allocator_rows(timeline.events))]
        if not found:
            raise MissingEvidence("memory")
        timeline = found[0]
        rows, kind, device = main_rows(timeline)
        allocated, relative = allocated_bytes(timeline, rows)
        table, steps = timeline.events, timeline.steps
        when, change = table.ts_ns[rows], table.ints("Bytes", missing=0)[rows]
        reserved = table.ints("Total Reserved")[rows]
        told = kind != CPU_TYPE and bool((reserved >= 0).all())
        peak = int(allocated.argmax())
        asked = (change > 0) & (when >= steps.start_ns[0]) & (when < steps.end_ns[-1])
        places = chosen(allocated)
        keeper, kept_bytes = _keeper(rank, timeline, rows)
        return cls(
            on_device=kind != CPU_TYPE,
            device=device,
            relative=relative,
            peak_bytes=int(allocated[peak]),
            peak_ns=int(when[peak] - steps.start_ns[0]),
            peak_location=_asker(timeline, rows[peak]),
            keeper=keeper,
            kept_bytes=kept_bytes,
            reserved_peak_bytes=int(reserved.max()) if told else None,
            start_bytes=int(allocated[0] - change[0]),
            end_bytes=int(allocated[-1]),
            step_bytes=_at(when, allocated, steps.start_ns),
            step_peak_bytes=_peaks(when, allocated, steps.start_ns, steps.end_ns),
            asked_bytes_per_step=int(change[asked].sum()) // len(steps),
            allocs_per_step=float(asked.sum()) / len(steps),
            marked=steps.marked,
            time_ns=when[places] - steps.start_ns[0],
            allocated_bytes=allocated[places],
            reserved_bytes=reserved[places] if told else np.empty(0, np.int64),
            capacity_bytes=_capacity_bytes(rank, kind, device),
            fixed_share=fixed_share(rank),
            known_bytes=_known(rank) if kind != CPU_TYPE and not relative else {},
        )

    @property
    def batch_ratio(self) -> float | None:
        """Return how many times the batch would fit, None where size or reserve are unknown.

        What a step adds to what is there between steps is taken to grow with the batch; some of it does not.
        """
        held = self.reserved_peak_bytes
        swing = self.peak_bytes - int(self.step_bytes.min())
        if not self.marked or not self.capacity_bytes or held is None or swing <= 0:
            return None
        return min(1 + max(FULL_SHARE * self.capacity_bytes - held, 0) / swing, MOST_BATCH_RATIO)

    @property
    def savings(self) -> tuple[Saving, ...]:
        """Return what other choices would have saved on a device, whose totals do not begin with the recording."""
        if not self.on_device or self.relative or not self.marked:
            return ()
        between = int(self.step_bytes.min())
        return trace_savings(
            self.allocated_bytes, between, self.known_bytes, self.capacity_bytes or 0, self.reserved_peak_bytes or 0
        )

    def content(self) -> Mapping[str, Any]:
        """Return the report's section on memory."""
        return {
            "source": "trace",
            "device": self.device,
            "on_device": self.on_device,
            "has_history": True,
            "relative": self.relative,
            "peak_bytes": self.peak_bytes,
            "peak_ns": self.peak_ns,
            "peak_op": self.peak_location.op,
            "reserved_peak_bytes": self.reserved_peak_bytes,
            "capacity_bytes": self.capacity_bytes,
            "batch_ratio": self.batch_ratio,
            "batch_time_share": time_share(self.fixed_share, self.batch_ratio),
            "what_if": [saving_row(one) for one in self.savings],
            "start_bytes": self.start_bytes,
            "allocated_bytes": self.end_bytes,
            "step_bytes": self.step_bytes.tolist(),
            "growth_bytes": growth_bytes(self.step_bytes) if self.marked else 0,
            "step_peak_bytes": self.step_peak_bytes.tolist(),
            "asked_bytes_per_step": self.asked_bytes_per_step,
            "allocs_per_step": self.allocs_per_step,
            "categories": self._categories(),
            "curve": {
                "action": None,
                "time_ns": self.time_ns.tolist(),
                "allocated_bytes": self.allocated_bytes.tolist(),
                "reserved_bytes": self.reserved_bytes.tolist() or None,
                "categories": {},
            },
        }

    def _categories(self) -> list[dict[str, Any]]:
        """Return the peak by category: what was counted, and the rest; nothing where the parts exceed the whole."""
        rest = self.peak_bytes - sum(self.known_bytes.values())
        if not self.known_bytes or rest < 0:
            return []
        parts = {**self.known_bytes, "rest": rest}
        return [
            {"category": word, "bytes": size, "share": size / max(self.peak_bytes, 1)}
            for word, size in sorted(parts.items(), key=lambda part: -part[1])
        ]


def _capacity_bytes(rank: Rank, kind: int, index: int) -> int | None:
    """Return the size of the device that the events are about."""
    sizes = {device.index: device.memory_bytes for device in rank.recording.devices}
    return sizes.get(index) if kind != CPU_TYPE else None


def _known(rank: Rank) -> dict[str, int]:
    """Return what the recorder counted on the live objects."""
    run = rank.recording.run
    told = run.settings if run else {}
    sizes = {word: told.get(f"{word}_bytes") for word in ("parameter", "gradient", "optimizer_state")}
    return {word: size for word, size in sizes.items() if isinstance(size, int) and size > 0}


_MOST_DEVICES = 1 << 20


def allocator_rows(table: EventTable) -> IntArray:
    """Return the rows, in order of time, of what allocators gave and took back.

    Shared memory in which workers hand batches over is mapped, not allocated: torch tells its size with a total of 0
    (c10, MapAllocator), so that totals would begin below 0 and fall to 0 with each batch.
    """
    rows = np.flatnonzero(table.of_kind(Kind.MEMORY))
    rows = rows[np.argsort(table.ts_ns[rows], kind="stable")]
    change, total = table.ints("Bytes", missing=0)[rows], table.ints("Total Allocated")[rows]
    nothing = (table.ints("Device Type", missing=CPU_TYPE)[rows] == CPU_TYPE) & (total == 0) & (change != 0)
    last = np.maximum.accumulate(np.where(nothing, -1, np.arange(len(rows))))
    before = np.where(last >= 0, total[last], 0) if len(rows) else total
    counted: IntArray = rows[~nothing | (before + change == 0)]
    return counted


def main_rows(timeline: Timeline) -> tuple[IntArray, int, int]:
    """Return (rows in order of time, device type, device index) of the device that is asked for most bytes."""
    table = timeline.events
    rows = allocator_rows(table)
    kinds, indices = table.ints("Device Type", missing=CPU_TYPE)[rows], table.ints("Device Id")[rows]
    first, back = np.unique(kinds * _MOST_DEVICES + indices, return_index=True, return_inverse=True)[1:]
    devices = np.column_stack([kinds, indices])[first]
    size = np.bincount(back, np.abs(table.ints("Bytes", missing=0)[rows]), minlength=len(devices))
    accelerators = devices[:, 0] != CPU_TYPE
    best = int(np.where(accelerators, size + 1, size * 0 if accelerators.any() else size).argmax())
    return rows[back == best], int(devices[best, 0]), int(devices[best, 1])


def allocated_bytes(timeline: Timeline, rows: IntArray) -> tuple[IntArray, bool]:
    """Return (allocated bytes after each event, whether they are only relative)."""
    table = timeline.events
    total = table.ints("Total Allocated")[rows]
    if (total >= 0).all():
        return total, False
    added = np.cumsum(table.ints("Bytes", missing=0)[rows])
    return added - min(int(added.min()), 0), True


def next_of(address: IntArray) -> IntArray:
    """Return for each event the next one of its address, which ends its block; their number where none does."""
    order = np.argsort(address, kind="stable")
    following = np.full(len(address), len(address), np.int64)
    same = address[order][1:] == address[order][:-1]
    following[order[:-1][same]] = order[1:][same]
    return following


def _asker(timeline: Timeline, row: int) -> Location:
    """Return the innermost operator around an allocation event."""
    table, host = timeline.events, timeline.host
    if not len(host):
        return Location()
    place = host.innermost(np.array([table.track[row]]), np.array([table.ts_ns[row]]))
    op = int(host.ancestor_where(host.kind == Kind.CPU_OP, place)[0])
    return Location(op=table.names([host.row[op]])[0]) if op >= 0 else Location()


def _keeper(rank: Rank, timeline: Timeline, rows: IntArray) -> tuple[Location, int]:
    """Return who made most of what outlives its step, and its bytes; a block ends when its address is freed.

    Args:
        rank: The rank, whose call tree knows the lines.
        timeline: Where the events were recorded.
        rows: Allocation events of the device, in order of time.
    """
    table, host, steps = timeline.events, timeline.host, timeline.steps
    address, change, when = table.ints("Addr")[rows], table.ints("Bytes", missing=0)[rows], table.ts_ns[rows]
    freed = np.append(when, np.iinfo(np.int64).max)[next_of(address)]
    step = np.searchsorted(steps.start_ns, when, side="right") - 1
    following = np.append(steps.start_ns, np.iinfo(np.int64).max)[step + 1]
    kept = np.flatnonzero((change > 0) & (address >= 0) & (step > 0) & (step < len(steps) - 1) & (freed > following))
    if not len(kept) or not len(host):
        return Location(), int(change[kept].sum())
    inside = host.innermost(table.track[rows[kept]], when[kept])
    ops = host.ancestor_where(host.kind == Kind.CPU_OP, inside)
    found = ops[ops >= 0]
    if timeline is rank.timeline:
        places, back = located(rank, found)
    else:
        names, back = table.distinct_names(host.row[found])
        places = [Location(op=table.strings.text(name)) for name in names.tolist()]
    sums: Counter[Location] = Counter()
    for place, size in zip(places, np.bincount(back, change[kept][ops >= 0], minlength=len(places)), strict=True):
        sums[place] += int(size)
    return sums.most_common(1)[0][0] if sums else Location(), int(change[kept].sum())


def _at(when_ns: IntArray, allocated: IntArray, moments_ns: IntArray) -> IntArray:
    """Return what is allocated at some moments: after the last event before each."""
    place = np.searchsorted(when_ns, moments_ns, side="right") - 1
    return allocated[np.maximum(place, 0)]


def _peaks(when_ns: IntArray, allocated: IntArray, start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Return the most allocated within each step, what is there at its start included."""
    peaks = _at(when_ns, allocated, start_ns).copy()
    step = np.searchsorted(start_ns, when_ns, side="right") - 1
    inside = (step >= 0) & (when_ns < end_ns[np.maximum(step, 0)])
    np.maximum.at(peaks, step[inside], allocated[inside])
    return peaks
