"""RecordingQuality: what a recording can and cannot show, counted; the gate (`uncork.quality`) judges it."""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import DEVICE_KINDS, EventTable, Kind
from uncork.intervals import covered_ns, intervals, total_ns
from uncork.measure import Measurement, Rank
from uncork.measure.clocks import SLACK_NS, apart_ns
from uncork.measure.losses import hollow_share, lost_kernels_share, lost_share, twice_share
from uncork.operators import COPY_CALL, LAUNCH_CALL
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_GRAPH_LAUNCH = re.compile(r"GraphLaunch", re.IGNORECASE)
_CPU_ONLY = re.compile(r"mkldnn|onednn|slow_conv|thnn_conv|_for_cpu|_cpu(_|$)|vml_", re.IGNORECASE)
_DEVICE_ONLY = re.compile(
    r"^aten::\w*(cudnn|miopen|cublas|_cuda(_|$)|_efficient_attention|mps_)|^triton_(poi|red|per|tem)_", re.IGNORECASE
)
_MODULE = re.compile(r"^nn\.Module: ")
_LOST_NAME = "unknown"
"""What torch 2.7 and newer write in place of a name that has other than printable ASCII characters."""
_NAMED_BY_PEOPLE = (Kind.USER_ANNOTATION, Kind.PYTHON_FUNCTION, Kind.CPU_OP)
_ENOUGH_TO_TELL = 4096
_TO_DEVICE = re.compile(r"^aten::(_to_copy|to|copy_)$")


@dataclass(frozen=True, eq=False)
class RecordingQuality(Measurement):
    """Counts and shares about a recording; None where the recording has no timeline to count in.

    Args:
        events: Events that were read.
        other_events: Of these, events of a kind that no profiler of PyTorch writes.
        cpu_ops: Operators on host threads.
        runtime_calls: Calls of the device's runtime.
        launches: Of these, launches and copies to or on a device.
        device_records: Kernels, copies and fills on a device.
        device_listed: Whether the recording lists a device.
        device_only_ops: Operators that only run on a device.
        cpu_only_ops: Operators that only run on a CPU.
        to_device_ops: Operators that may copy to a device.
        device_allocations_share: Share of the recorded allocations that are on a device.
        unlinked_share: Share of the device records without their launch.
        before_window: Of these, how many start before anything that was launched in the recording.
        lost_share: Share of the launches whose device record is missing, where others have theirs.
        lost_kernels_share: The same of launches of kernels alone.
        hollow_share: Share of the operators that always call another one, below which that one is missing.
        graph_launches: Graph replays.
        graph_kernels: Kernels that they started.
        early_device_share: Share of the linked device records that start before their launch.
        apart_ns: How far the device's clock is at least ahead of the host's (behind: below 0); 0 if nothing shows.
        twice_share: Share of the device's summed times in which a stream would do more than one thing at once.
        flat_ops_share: Share of the operators whose length is 0.
        flat_device_share: The same of device records.
        whole_us: Whether all times are whole microseconds, as old profilers write them.
        step_ns: Wall time of each step, int64 (steps,).
        warm_up_ns: Durations of first steps left out as warm-up.
        blind_ns: Durations of first steps left out because none of the kernels that they launch is recorded.
        marked: Whether steps are marked.
        ends_early_share: Share of the window in which the device works after the last mark.
        first_use_share: Share of the window that goes to first uses.
        busy_share: Share of the window in which the device (or an operator) works.
        overhead_share: Share of the window in which the profiler works itself.
        has_stacks: Whether Python frames or stacks occur.
        has_shapes: Whether shapes occur.
        has_memory: Whether allocations occur.
        has_modules: Whether module names occur.
        lost_names: Regions, functions and operators whose name the profiler could not write.
        clipped: Events cut because they outlive the event around them, or operators cut at the end of a step.
    """

    events: int
    other_events: int
    cpu_ops: int
    runtime_calls: int
    launches: int
    device_records: int
    device_listed: bool
    device_only_ops: int
    cpu_only_ops: int
    to_device_ops: int
    device_allocations_share: float
    unlinked_share: float
    before_window: int
    lost_share: float
    lost_kernels_share: float
    hollow_share: float
    graph_launches: int
    graph_kernels: int
    early_device_share: float
    apart_ns: int
    twice_share: float
    flat_ops_share: float
    flat_device_share: float
    whole_us: bool
    step_ns: IntArray
    warm_up_ns: tuple[int, ...]
    blind_ns: tuple[int, ...]
    marked: bool
    ends_early_share: float
    first_use_share: float
    busy_share: float
    overhead_share: float
    has_stacks: bool
    has_shapes: bool
    has_memory: bool
    has_modules: bool
    lost_names: int
    clipped: int

    @classmethod
    def of(cls, rank: Rank) -> "RecordingQuality":
        """Return what can be counted in a rank's recording; raises `MissingEvidence` where it has no events."""
        timeline, ledger = rank.timeline, rank.ledger
        table, device, host = timeline.events, timeline.device, timeline.host
        op = table.of_kind(Kind.CPU_OP) & ~timeline.is_step_mark
        call = table.of_kind(Kind.RUNTIME)
        launch = table.name_is(LAUNCH_CALL, Kind.RUNTIME) | table.name_is(COPY_CALL, Kind.RUNTIME)
        graph = table.name_is(_GRAPH_LAUNCH, Kind.RUNTIME)
        linked = device.launch >= 0
        wall = max(int(ledger.step_ns.sum()), 1)
        spent = dict(zip(ledger.causes, ledger.ns.sum(axis=1).tolist(), strict=True))
        own = intervals(*_spans(table, table.of_kind(Kind.OVERHEAD)))
        return cls(
            events=len(table),
            other_events=int(table.of_kind(Kind.OTHER).sum()),
            cpu_ops=int(op.sum()),
            runtime_calls=int(call.sum()),
            launches=int(launch.sum()),
            device_records=len(device),
            device_listed=bool(rank.recording.devices),
            device_only_ops=int((op & table.name_is(_DEVICE_ONLY, Kind.CPU_OP)).sum()),
            cpu_only_ops=int((op & table.name_is(_CPU_ONLY, Kind.CPU_OP)).sum()),
            to_device_ops=int((op & table.name_is(_TO_DEVICE, Kind.CPU_OP)).sum()),
            device_allocations_share=_device_allocations_share(table),
            unlinked_share=float((~linked).mean()) if len(device) else 0.0,
            before_window=_before_window(timeline),
            lost_share=lost_share(timeline),
            lost_kernels_share=lost_kernels_share(timeline),
            hollow_share=hollow_share(timeline),
            graph_launches=int(graph.sum()),
            graph_kernels=int(graph[host.row[device.launch[linked]]].sum()),
            early_device_share=_early_share(timeline),
            apart_ns=apart_ns(timeline),
            twice_share=twice_share(timeline),
            flat_ops_share=_flat_share(table, op),
            flat_device_share=_flat_share(table, table.of_kind(*DEVICE_KINDS)),
            whole_us=_whole_us(table),
            step_ns=ledger.step_ns,
            warm_up_ns=timeline.steps.left_out_ns[timeline.steps.blind :],
            blind_ns=timeline.steps.left_out_ns[: timeline.steps.blind],
            marked=timeline.steps.marked,
            ends_early_share=timeline.steps.ends_early_share,
            first_use_share=spent.get("first_use", 0) / wall,
            busy_share=int(ledger.busy_ns.sum()) / wall,
            overhead_share=int(covered_ns(own, *timeline.window)) / max(total_ns(timeline.steps.intervals), 1),
            **_extras(table, rank.deep.events),
            lost_names=_lost_names(table, rank.deep.events),
            clipped=host.clipped + _over_step_ends(timeline),
        )


def _over_step_ends(timeline: Timeline) -> int:
    """Return how many operators on the thread of the step marks begin in one step and end in another."""
    table, host = timeline.events, timeline.host
    marks = timeline.is_step_mark & (table.track == timeline.main_track) & (table.dur_ns > 0)
    ends = np.sort(table.end_ns[marks])
    ops = (host.kind == Kind.CPU_OP) & (host.track == timeline.main_track)
    begun = np.searchsorted(ends, host.start_ns[ops], side="right")
    return int(np.count_nonzero(begun != np.searchsorted(ends, host.end_ns[ops], side="left")))


def _extras(*tables: EventTable) -> dict[str, bool]:
    """Return which extras occur in any of a rank's recordings: the one for durations, or the one for places."""
    return {
        "has_stacks": any(table.of_kind(Kind.PYTHON_FUNCTION).any() or "Call stack" in table.args for table in tables),
        "has_shapes": any("Input Dims" in table.args for table in tables),
        "has_memory": any(table.of_kind(Kind.MEMORY).any() for table in tables),
        "has_modules": any(table.fitting(_MODULE).any() or "Module Hierarchy" in table.args for table in tables),
    }


def _lost_names(*tables: EventTable) -> int:
    return max(int(np.count_nonzero(table.name_is(_LOST_NAME, *_NAMED_BY_PEOPLE))) for table in tables)


def _device_allocations_share(table: EventTable) -> float:
    """Return which share of the allocations is on a device (``Device Type`` 0 is the host, c10::DeviceType)."""
    rows = table.of_kind(Kind.MEMORY)
    return float((table.ints("Device Type", missing=0)[rows] != 0).mean()) if rows.any() else 0.0


def _spans(table: EventTable, rows: BoolArray) -> tuple[IntArray, IntArray]:
    return table.ts_ns[rows], table.end_ns[rows]


def _flat_share(table: EventTable, rows: BoolArray) -> float:
    return float((table.dur_ns[rows] == 0).mean()) if rows.any() else 0.0


def _whole_us(table: EventTable) -> bool:
    """Return whether all times are whole microseconds; where they are not, the first events show it."""
    parts = (slice(0, _ENOUGH_TO_TELL), slice(_ENOUGH_TO_TELL, None))
    return not any((times[part] % 1000).any() for part in parts for times in (table.ts_ns, table.dur_ns))


def _before_window(timeline: Timeline) -> int:
    """Return how many device records without a launch start before any that was launched in the recording."""
    device = timeline.device
    linked = device.launch >= 0
    if not linked.any():
        return 0
    first = int(device.start_ns[linked].min())
    return int((~linked & (device.start_ns < first)).sum())


def _early_share(timeline: Timeline) -> float:
    """Return the share of linked device records that start before their launch does."""
    device, host = timeline.device, timeline.host
    linked = device.launch >= 0
    if not linked.any():
        return 0.0
    lead = host.start_ns[device.launch[linked]] - device.start_ns[linked]
    return float((lead > SLACK_NS).mean())
