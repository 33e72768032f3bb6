"""IdleDevice: a machine with a device whose program computes on the host all the same."""

from uncork.events import Kind
from uncork.formulas import FORMULAS
from uncork.hardware import peaks_of
from uncork.measure import Measurement, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable
from uncork.operators import COPY_CALL, LAUNCH_CALL
from uncork.records import dataclass

LEAST_FLOP = 1_000_000
"""Work per step below which a device would not be faster: its launch alone takes as long on the host."""


@dataclass(frozen=True)
class IdleDevice(Measurement):
    """Work on the host beside a device that does nothing; times are means per step.

    Args:
        device: Name of the device; empty where none is listed.
        used: Whether the host gives it any work.
        compute_ns: Time of operators that compute on the host.
        flop: Their work, as far as shapes tell.
        device_ns: Least time of that work on the device, None where it is not known.
        largest: The operator that takes most time.
        step_ns: Mean duration of a step.
    """

    device: str
    used: bool
    compute_ns: int
    flop: int
    device_ns: int | None
    largest: Operator | None
    step_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "IdleDevice":
        """Return what a rank computes on the host; listed devices count as there."""
        table = rank.made(OperatorTable)
        devices = rank.recording.devices
        computing = [one for one in table.operators if one.op_class == "compute"]
        work = [one for one in computing if one.flop and one.name in FORMULAS]
        flop = sum(one.flop or 0 for one in work)
        known = peaks_of(devices)
        rate = known.matrix_flop_per_s("fp32") if known else None
        moved = sum(one.moved_bytes or 0 for one in work)
        return cls(
            device=next((one.name for one in devices if one.name), "device" if devices else ""),
            used=len(rank.timeline.device) > 0 or _gives_work(rank),
            compute_ns=sum(one.cpu_self_ns for one in computing),
            flop=flop,
            device_ns=int(max(flop / rate, moved / known.peak_bytes_per_s) * 1e9) if known and rate and flop else None,
            largest=max(computing, key=lambda one: one.cpu_self_ns, default=None),
            step_ns=table.step_ns,
        )


def _gives_work(rank: Rank) -> bool:
    """Return whether the host launches work for a device or copies to it; a lone synchronisation is no use of it."""
    table = rank.timeline.events
    return any(table.fitting(calls, Kind.RUNTIME).any() for calls in (LAUNCH_CALL, COPY_CALL))
