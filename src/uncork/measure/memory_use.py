"""MemoryUse: how much of a device's memory a rank uses at most, from whatever recorded it."""

from collections.abc import Iterator

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.memory_what_if import Saving
from uncork.measure.snapshot_memory import SnapshotMemory
from uncork.measure.trace_memory import TraceMemory
from uncork.records import dataclass


@dataclass(frozen=True)
class MemoryUse(Measurement):
    """The largest use of device memory that was seen.

    Args:
        source: ``snapshot``, ``trace`` or ``samples``.
        used_bytes: Reserved by the allocator at most; with samples, used on the device by all processes.
        allocated_bytes: In use by tensors at most, None with samples.
        capacity_bytes: What the device has.
        savings: What other choices would have saved, as far as the recording tells.
    """

    source: str
    used_bytes: int
    allocated_bytes: int | None
    capacity_bytes: int
    savings: tuple[Saving, ...] = ()

    @classmethod
    def of(cls, rank: Rank) -> "MemoryUse":
        """Return the use on a rank; needs the device's size."""
        capacity = _capacity_bytes(rank)
        for found in recorded_memory(rank):
            held = found.reserved_peak_bytes
            capacity = capacity or found.capacity_bytes or 0  # as a failed request shows it
            if held and capacity:
                source = "snapshot" if isinstance(found, SnapshotMemory) else "trace"
                return cls(source, held, found.peak_bytes, capacity, found.savings)
        sampled = _sampled_bytes(rank)
        if sampled and capacity:
            return cls("samples", sampled, None, capacity)
        raise MissingEvidence("memory" if capacity else "device_model")


def recorded_memory(rank: Rank) -> Iterator[SnapshotMemory | TraceMemory]:
    """Yield what was recorded of the device's memory, the most exact first."""
    kinds: tuple[type[SnapshotMemory | TraceMemory], ...] = (SnapshotMemory, TraceMemory)
    for kind in kinds:
        try:
            found = rank.made(kind)
        except MissingEvidence:
            continue
        if isinstance(found, SnapshotMemory) or found.on_device:
            yield found


def _capacity_bytes(rank: Rank) -> int:
    sizes = [device.memory_bytes for device in rank.recording.devices if device.memory_bytes]
    return max(sizes, default=0)


def _sampled_bytes(rank: Rank) -> int:
    samples = rank.recording.samples
    series = samples.series if samples else {}
    used = [values for name, (_, values) in series.items() if name.startswith("gpu_memory_used_bytes")]
    return max((int(values.max()) for values in used if len(values)), default=0)
