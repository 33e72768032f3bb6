"""DeviceTime: how long a device is busy, and with what, over the whole recording."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.intervals import Intervals, intersect, intervals, total_ns
from uncork.kernels import CLASSES
from uncork.measure import Measurement, MissingEvidence, Rank


@dataclass(frozen=True)
class DeviceTime(Measurement):
    """Times of all streams together: moments in which several work count once.

    Args:
        records: Kernels, copies and fills.
        span_ns: From the first start to the last end.
        busy_ns: At least one stream works.
        compute_ns: A kernel that is no collective works.
        communication_ns: A collective works.
        exposed_communication_ns: A collective works and no other kernel does.
        memory_ns: A copy or a fill works.
    """

    records: int
    span_ns: int
    busy_ns: int
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    memory_ns: int

    @property
    def idle_ns(self) -> int:
        """Return the time in which no stream works."""
        return self.span_ns - self.busy_ns

    @classmethod
    def of(cls, rank: Rank) -> "DeviceTime":
        """Return the device's times; raises `MissingEvidence` without device records."""
        timeline = rank.timeline
        device = timeline.device
        if not len(device):
            raise MissingEvidence("device")
        # MTIA writes its copies as kernels of this name.
        kernel = (device.kind == Kind.KERNEL) & ~timeline.events.name_is("dma_request")[device.row]
        collective = kernel & (timeline.kernel_class == CLASSES.index("comm"))

        def spans(rows: npt.NDArray[np.bool_]) -> Intervals:
            return intervals(device.start_ns[rows], device.end_ns[rows])

        compute, communication = spans(kernel & ~collective), spans(collective)
        return cls(
            records=len(device),
            span_ns=int(device.end_ns.max() - device.start_ns.min()),
            busy_ns=total_ns(timeline.device_busy),
            compute_ns=total_ns(compute),
            communication_ns=total_ns(communication),
            exposed_communication_ns=total_ns(communication) - total_ns(intersect(communication, compute)),
            memory_ns=total_ns(spans(~kernel)),
        )
