"""HostMemory: how the memory of the program and of its loader's workers on the host grows while it runs."""

import numpy as np
import numpy.typing as npt

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass

FloatArray = npt.NDArray[np.float64]

SETTLED_SHARE = 0.3
"""The first part of a run is left out: imports, caches and workers come up then."""
LEAST_SAMPLES = 8
MOST_POINTS = 64
"""Between so many medians in order of time every slope is looked at; all samples of a long run would make billions."""
PARTS = 5
"""Parts of the settled time whose least memory is compared: few enough that each holds a whole cycle of collections."""


@dataclass(frozen=True)
class HostMemory(Measurement):
    """Host memory by sampling, once the run has settled and until the last step has ended.

    What lasts is the least memory from a time on: what is given back at some later time, as by a collection of garbage,
    is no part of it.

    Args:
        series: Which: ``process_rss_bytes`` or another series of resident memory; the one that grows most.
        start_bytes: At the beginning of the settled part.
        growth_bytes: By the median of all slopes (Theil and Sen), which a third of the samples cannot turn.
        span_ns: Length of the settled part.
        half_share: Share of the lasting growth in that half of the time which has less of it.
        part_share: Share of the lasting growth between two fifths of the time that have most of it.
        capacity_bytes: Memory of the host, None where the recording does not say.
    """

    series: str
    start_bytes: int
    growth_bytes: int
    span_ns: int
    half_share: float
    part_share: float
    capacity_bytes: int | None

    @classmethod
    def of(cls, rank: Rank) -> "HostMemory":
        """Return the growth on a rank; needs samples."""
        samples, (begin_ns, end_ns) = rank.recording.samples, _loop_ns(rank)
        found = [
            _grown(name, time_ns[kept], values[kept])
            for name, (time_ns, values) in (samples.series.items() if samples else ())
            # A process that has ended holds nothing.
            if name.endswith("rss_bytes")
            and np.count_nonzero(kept := (time_ns >= begin_ns) & (time_ns <= end_ns) & (values > 0)) >= LEAST_SAMPLES
        ]
        if not found:
            raise MissingEvidence("samples")
        series, start, growth, span_ns, half, part = max(found, key=lambda one: one[2])
        capacity = rank.recording.host.get("memory_bytes")
        return cls(series, start, growth, span_ns, half, part, capacity if isinstance(capacity, int) else None)


def _loop_ns(rank: Rank) -> tuple[int, int]:
    """Return when the first watched step began and the last step ended.

    Before, memory grows by imports and data sets; after, nothing is trained, and it stays as it is.
    """
    run = rank.recording.run
    begins = [one.start_ns for one in run.windows if one.start_ns is not None] if run else []
    ended_ns = run.steps_ended_ns if run else None
    return min(begins, default=0), np.iinfo(np.int64).max if ended_ns is None else ended_ns


def _grown(name: str, time_ns: npt.NDArray[np.int64], values: FloatArray) -> tuple[str, int, int, int, float, float]:
    """Return (series, start, growth, span, half_share, part_share) of the settled samples."""
    first = int(len(values) * SETTLED_SHARE)
    when = (time_ns[first:] - time_ns[first]).astype(np.float64)
    size = values[first:].astype(np.float64)
    span = float(when[-1])
    half, part = _lasting(size)
    return name, int(size[0]), int(_slope(when, size) * span), int(span), half, part


def _slope(when: FloatArray, size: FloatArray) -> float:
    """Return the median of the slopes between all medians of so many stretches of time (Theil 1950, Sen 1968)."""
    pieces = np.array_split(np.arange(len(size)), min(len(size), MOST_POINTS))
    x, y = (np.array([np.median(values[piece]) for piece in pieces]) for values in (when, size))
    earlier, later = np.triu_indices(len(x), 1)
    apart = x[later] > x[earlier]
    slopes = (y[later] - y[earlier])[apart] / (x[later] - x[earlier])[apart]
    return float(np.median(slopes)) if len(slopes) else 0.0


def _lasting(size: FloatArray) -> tuple[float, float]:
    """Return how the lasting growth lies in time: the lesser half's share of it, and the most between two parts."""
    least = np.array([part.min() for part in np.array_split(size, PARTS) if len(part)])
    lasts = np.minimum.accumulate(least[::-1])[::-1]
    gained, middle = float(lasts[-1] - lasts[0]), len(lasts) // 2
    if gained <= 0:
        return 0.0, 1.0
    halves = (lasts[middle] - lasts[0], lasts[-1] - lasts[middle])
    return float(min(halves) / gained), float(np.diff(lasts).max() / gained)
