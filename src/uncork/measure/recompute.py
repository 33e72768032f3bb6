"""Recompute: forward work done again in the backward pass, and the memory that it saves."""

import numpy as np

from uncork.events import Kind
from uncork.measure import Measurement, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass


@dataclass(frozen=True)
class Recompute(Measurement):
    """Activation checkpointing of a rank; times are means per step, of the device where one works.

    Args:
        recompute_ns: Time of recomputed operators.
        largest: The recomputed operator that takes most time, None without any.
        peak_bytes: Most memory reserved on the device; without one, most that the process held of the host's. None
            where not recorded.
        capacity_bytes: Memory of the device, else of the host; None where not known.
        on_device: Whether that is a device's.
        step_ns: Mean duration of a step.
    """

    recompute_ns: int
    largest: Operator | None
    peak_bytes: int | None
    capacity_bytes: int | None
    on_device: bool
    step_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "Recompute":
        """Return the recomputation of a rank."""
        table = rank.made(OperatorTable)
        on_device = len(rank.timeline.device) > 0
        again = [part for part in operator_parts(rank) if part.phase == "recompute"]
        return cls(
            recompute_ns=sum(map(table.weight_ns, again)),
            largest=max(again, key=table.weight_ns, default=None),
            peak_bytes=_peak_bytes(rank) if on_device else _held_bytes(rank),
            capacity_bytes=_capacity_bytes(rank, on_device=on_device),
            on_device=on_device,
            step_ns=table.step_ns,
        )


def _capacity_bytes(rank: Rank, *, on_device: bool) -> int | None:
    """Return the memory of the device that works, or of the host."""
    if on_device:
        return next((one.memory_bytes for one in rank.recording.devices if one.memory_bytes), None)
    capacity = rank.recording.host.get("memory_bytes")
    return capacity if isinstance(capacity, int) else None


def _held_bytes(rank: Rank) -> int | None:
    """Return the most memory that the process was seen to hold."""
    samples = rank.recording.samples
    series = samples.series.get("process_rss_bytes") if samples else None
    return int(series[1].max()) if series is not None and len(series[1]) else None


def _peak_bytes(rank: Rank) -> int | None:
    """Return the most memory that was reserved on a device, by the recording's allocations."""
    table = rank.deep.events
    rows = np.flatnonzero(table.of_kind(Kind.MEMORY) & (table.ints("Device Type", missing=0) != 0))
    reserved = table.ints("Total Reserved", missing=0)[rows]
    return int(reserved.max()) if len(rows) and reserved.max() > 0 else None
