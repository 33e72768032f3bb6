"""HostMemory: how the memory of the program and of its loader's workers on the host grows while it runs."""

import numpy as np
import numpy.typing as npt

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass

FloatArray = npt.NDArray[np.float64]

SETTLED_SHARE = 0.3
"""The first part of a run is left out: imports, caches and workers come up then."""
LEAST_SAMPLES = 8


@dataclass(frozen=True)
class HostMemory(Measurement):
    """Host memory by sampling, once the run has settled.

    Args:
        series: Which: ``process_rss_bytes`` or another series of resident memory; the one that grows most.
        start_bytes: At the beginning of the settled part.
        growth_bytes: By the line fitted to it, from its beginning to its end.
        span_ns: Its length.
        steadiness: R² of that line: 1 where it grows evenly, near 0 where it only swings.
        capacity_bytes: Memory of the host, None where the recording does not say.
    """

    series: str
    start_bytes: int
    growth_bytes: int
    span_ns: int
    steadiness: float
    capacity_bytes: int | None

    @classmethod
    def of(cls, rank: Rank) -> "HostMemory":
        """Return the growth on a rank; needs samples."""
        samples, begin_ns = rank.recording.samples, _loop_start_ns(rank)
        found = [
            _fitted(name, time_ns[kept], values[kept])
            for name, (time_ns, values) in (samples.series.items() if samples else ())
            # A process that has ended holds nothing.
            if name.endswith("rss_bytes")
            and np.count_nonzero(kept := (time_ns >= begin_ns) & (values > 0)) >= LEAST_SAMPLES
        ]
        if not found:
            raise MissingEvidence("samples")
        series, start, growth, span_ns, steadiness = max(found, key=lambda one: one[2])
        capacity = rank.recording.host.get("memory_bytes")
        return cls(series, start, growth, span_ns, steadiness, capacity if isinstance(capacity, int) else None)


def _loop_start_ns(rank: Rank) -> int:
    """Return when the first watched step began: before it, memory grows by imports and data sets."""
    windows = rank.recording.run.windows if rank.recording.run else ()
    return min((one.start_ns for one in windows if one.start_ns is not None), default=0)


def _fitted(name: str, time_ns: npt.NDArray[np.int64], values: FloatArray) -> tuple[str, int, int, int, float]:
    """Return (series, start, growth, span, R²) of the line through the settled samples."""
    first = int(len(values) * SETTLED_SHARE)
    when = (time_ns[first:] - time_ns[first]).astype(np.float64)
    size = values[first:].astype(np.float64)
    span = float(when[-1])
    spread = float(((when - when.mean()) ** 2).sum())
    if not spread:
        return name, int(size[0]), 0, 0, 0.0
    slope = float(((when - when.mean()) * (size - size.mean())).sum()) / spread
    line = size.mean() + slope * (when - when.mean())
    total = float(((size - size.mean()) ** 2).sum())
    steadiness = 1 - float(((size - line) ** 2).sum()) / total if total else 0.0
    return name, int(size[0]), int(slope * span), int(span), steadiness
