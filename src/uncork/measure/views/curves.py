"""Curves: memory and sampled figures over time, thinned to what a page can show without losing a peak."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from uncork.events import IntArray
from uncork.measure.trace_memory import allocator_rows
from uncork.measure.views.names import printable
from uncork.recording import SampleTable
from uncork.records import dataclass
from uncork.timeline import Timeline

FloatArray = npt.NDArray[np.float64]

# A screen is some 4,000 pixels wide at most; each bucket keeps its first, lowest, highest and last point.
_MOST_BUCKETS = 5_000
_MOST_SAMPLED = 14
# In the order in which they are shown; each has its name in the catalogue.
_KNOWN = (
    *("gpu_busy_share", "cpu_share", "process_cpu_cores", "gpu_memory_used_bytes", "process_rss_bytes"),
    *("gpu_power_w", "gpu_clock_hz", "host_memory_used_bytes", "disk_read_bytes_per_s", "disk_write_bytes_per_s"),
    *("network_receive_bytes_per_s", "network_send_bytes_per_s"),
    *("gpu_pcie_receive_bytes_per_s", "gpu_pcie_send_bytes_per_s", "process_threads", "processes"),
)
_PER_CORE = "cpu_core_share/"


@dataclass(frozen=True, eq=False)
class Curve:
    """Series on one scale.

    Args:
        group: ``memory``, ``deep_memory`` (of the recorder's deep window, which has its own time) or ``counters``.
        label: Message id and parameters.
        unit: Ends as names of that unit do: ``_bytes``, ``share``, ``count``.
        series: Catalogue key → (time in ns since the epoch, value).
    """

    group: str
    label: Mapping[str, object]
    unit: str
    series: Mapping[str, tuple[IntArray, FloatArray]]

    @property
    def most(self) -> float:
        """Return the highest value of all series, 0 where there is none."""
        return max((float(value.max()) for _, value in self.series.values() if len(value)), default=0.0)


def memory_curves(timeline: Timeline, group: str) -> list[Curve]:
    """Return what was allocated and reserved over time, one curve per device; the host's where nothing else is."""
    table = timeline.events
    rows = allocator_rows(table)
    if not len(rows):
        return []
    kind, index = table.ints("Device Type")[rows], table.ints("Device Id")[rows]
    allocated = table.ints("Total Allocated")[rows]
    reserved = table.ints("Total Reserved")[rows]
    changed = table.ints("Bytes", missing=0)[rows]
    curves = []
    for device_type, device in sorted({*zip(kind.tolist(), index.tolist(), strict=True)}):
        here = (kind == device_type) & (index == device)
        total = allocated[here]
        if (total < 0).all():
            total = np.cumsum(changed[here])
            total -= min(int(total.min()), 0)
        when = table.ts_ns[rows[here]]
        series = {"page.series.allocated": _thinned(when, np.maximum(total, 0).astype(np.float64))}
        if (reserved[here] > 0).any():
            series["page.series.reserved"] = _thinned(when, np.maximum(reserved[here], 0).astype(np.float64))
        # Device type 0 is the host (c10::DeviceType).
        label = (
            {"id": "page.curve.host_memory"}
            if device_type == 0
            else {
                "id": "page.curve.device_memory",
                "params": {"device": device},
            }
        )
        curves.append(Curve(group, label, "memory_bytes", series))
    return curves


def sampled_curves(samples: SampleTable | None, start_ns: int, end_ns: int) -> list[Curve]:
    """Return the figures sampled beside the program within a window; the cores' as their mean.

    Shares and rates are means since the sample before, so each value stands for the time from that one to its own: so a
    window shorter than the samples' distance has its figures too.
    """
    if samples is None:
        return []
    series = dict(samples.series)
    cores = [series.pop(name) for name in list(series) if name.startswith(_PER_CORE)]
    if cores:
        shortest = min(len(value) for _, value in cores)
        series["cpu_share"] = (cores[0][0][:shortest], np.mean([value[:shortest] for _, value in cores], axis=0))
    curves = []
    for name in sorted(series, key=_place):
        when, value = series[name]
        since, until, mean = when[:-1], when[1:], value[1:]
        inside = (until > start_ns) & (since < end_ns) & np.isfinite(mean) & (mean >= 0)
        if inside.any():
            unit, _, device = name.partition("/")
            id_ = f"page.curve.{unit}" if unit in _KNOWN else "page.curve.sampled"
            label = {"id": id_, "params": {"name": printable(name), "device": printable(device)}}
            points = _thinned(np.maximum(since[inside], start_ns), mean[inside])
            curves.append(Curve("counters", label, unit, {"page.series.sampled": points}))
    return curves[:_MOST_SAMPLED]


def _place(name: str) -> tuple[int, str]:
    """Return where a series stands: those that tell most first, all devices of one beside each other."""
    unit = name.partition("/")[0]
    return (_KNOWN.index(unit) if unit in _KNOWN else len(_KNOWN), name)


def _thinned(when_ns: IntArray, value: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the points of a step curve that can be told apart on a screen: per bucket first, lowest, highest, last."""
    if len(when_ns) <= 4 * _MOST_BUCKETS:
        return when_ns, value
    span = max(int(when_ns[-1] - when_ns[0]), 1)
    bucket = np.minimum((when_ns - when_ns[0]) * _MOST_BUCKETS // span, _MOST_BUCKETS - 1)
    edges = np.flatnonzero(np.diff(bucket)) + 1
    first = np.concatenate([[0], edges])
    last = np.concatenate([edges - 1, [len(bucket) - 1]])
    order = np.lexsort((value, bucket))
    kept = np.unique(np.concatenate([first, last, order[first], order[last]]))
    return when_ns[kept], value[kept]
