"""Timeline: one rank's events in order: who nests in whom, what runs on the device, who launched it."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from uncork.events import DEVICE_KINDS, EventTable, Kind, NameTest
from uncork.intervals import Intervals, contains, covered_ns, intervals, total_ns
from uncork.kernels import kernel_classes
from uncork.nesting import HostSlices, nest
from uncork.operators import AUTOGRAD, CAPTURE_CALL, KERNEL_CALL, LOADER_FRAME, is_loader
from uncork.recording import Recording
from uncork.records import dataclass
from uncork.steps import Steps, count_blind, without_warm_up

K = TypeVar("K")
T = TypeVar("T")
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

STEP_MARK = re.compile(r"^ProfilerStep\s*#\d+")
HOST_KINDS = (Kind.CPU_OP, Kind.USER_ANNOTATION, Kind.PYTHON_FUNCTION, Kind.RUNTIME, Kind.GC, Kind.OVERHEAD)
RUNS_AHEAD_SHARE = 0.1
"""Step marks do not bound the device's work where it goes on for longer than this share of the marked time
(labelled traces: 0.00–0.04 where the host waits for the device in each step, 0.45–0.96 where it runs ahead)."""
QUEUED_BEFORE_NS = 1_000_000
"""A first kernel that starts later than this after its launch waited for work that was not recorded: an idle
device takes 5–50 µs."""

STRAY_SHARE = 0.01
"""Records that hold less than this share of the device's work, before a gap longer than all the rest, are strays."""


@dataclass(frozen=True, eq=False)
class DeviceSlices:
    """Work on device streams, sorted by start; all arrays have shape (slices,).

    Args:
        row: Row in the event table.
        start_ns: Start.
        end_ns: End.
        track: Index of the stream in the table's tracks.
        kind: `Kind` codes: kernel, copy or fill.
        launch: Index in `HostSlices` of the runtime call that launched it, -1 where none is recorded.
    """

    row: IntArray
    start_ns: IntArray
    end_ns: IntArray
    track: IntArray
    kind: npt.NDArray[np.uint8]
    launch: IntArray

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self.row)

    @property
    def dur_ns(self) -> IntArray:
        """Return the durations."""
        return self.end_ns - self.start_ns


def _fixed(found: BoolArray) -> BoolArray:
    """Return an array that many share, kept from being written to."""
    found.flags.writeable = False
    return found


def once(answer: Callable[[K], T]) -> Callable[[K], T]:
    """Return a function that keeps on its argument (a timeline, a call tree, a rank) what it answers about it."""

    @wraps(answer)
    def kept(of: K) -> T:
        known = of.__dict__.setdefault("_kept", {})
        if answer not in known:
            known[answer] = answer(of)
        found: T = known[answer]
        return found

    return kept


class Timeline:
    """Questions about when things happened in one recording; each answer is computed once, on first use.

    Args:
        recording: A recording that has events.

    Raises:
        ValueError: The recording has none.
    """

    def __init__(self, recording: Recording) -> None:
        if recording.events is None:
            raise ValueError("a timeline needs events")
        self.recording = recording
        self.events: EventTable = recording.events

    @cached_property
    def host(self) -> HostSlices:
        """Return the spans on host threads, nested. Step marks are left out: they cross other spans' ends."""
        table = self.events
        kept = table.of_kind(*HOST_KINDS) & ~(table.of_kind(Kind.USER_ANNOTATION, Kind.CPU_OP) & self.is_step_mark)
        return nest(table, np.flatnonzero(kept))

    def named(self, test: NameTest, *kinds: Kind) -> BoolArray:
        """Return for each host slice whether it is of one of the kinds (of any, without) and its name fits.

        Args:
            test: As `EventTable.name_is` takes it.
            *kinds: Kinds of events.
        """
        return self.events.which(self.host.name, self.host.kind, test, *kinds)

    @cached_property
    def in_steps(self) -> BoolArray:
        """Return for each host slice whether it starts inside a step."""
        return _fixed(contains(self.steps.intervals, self.host.start_ns))

    @cached_property
    def in_loader(self) -> BoolArray:
        """Return for each host slice whether it starts while the main thread is inside the loader's next."""
        return _fixed(contains(self.loader_waits, self.host.start_ns))

    @cached_property
    def device_step(self) -> IntArray:
        """Return for each device slice the step in which it starts, -1 outside."""
        return self.steps.at(self.device.start_ns)

    @cached_property
    def kernel_class(self) -> npt.NDArray[np.int8]:
        """Return for each device slice the place of its name's class in `uncork.kernels.CLASSES`."""
        return kernel_classes(self.events, self.device.row)

    @cached_property
    def is_step_mark(self) -> BoolArray:
        """Return for each event whether it is a host-side step mark (``ProfilerStep#N``)."""
        return self.events.name_is(STEP_MARK)

    @cached_property
    def device(self) -> DeviceSlices:
        """Return the work on device streams."""
        table = self.events
        rows = np.flatnonzero(table.of_kind(*DEVICE_KINDS) & (table.dur_ns >= 0))
        rows = rows[np.argsort(table.ts_ns[rows], kind="stable")]
        return DeviceSlices(
            row=rows,
            start_ns=table.ts_ns[rows],
            end_ns=table.end_ns[rows],
            track=table.track[rows].astype(np.int64),
            kind=table.kind[rows],
            launch=self._launches(rows),
        )

    def _launches(self, rows: IntArray) -> IntArray:
        """Return the host slice that launched each device row: the runtime call of the same correlation."""
        table, host = self.events, self.host
        correlation = table.ints("correlation", missing=0)
        calls = np.flatnonzero(host.kind == Kind.RUNTIME)
        keys = correlation[host.row[calls]]
        calls, keys = calls[keys > 0], keys[keys > 0]
        order = np.argsort(keys, kind="stable")
        calls, keys = calls[order], keys[order]
        wanted = correlation[rows]
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        if not len(keys):
            return np.full(len(rows), -1, np.int64)
        return np.where((wanted > 0) & (keys[place] == wanted), calls[place], -1).astype(np.int64)

    @cached_property
    def device_busy(self) -> Intervals:
        """Return when at least one stream of any device works."""
        return intervals(self.device.start_ns, self.device.end_ns)

    @cached_property
    def launch_op(self) -> IntArray:
        """Return for each device slice the innermost operator (or region) around its launch, -1 if unknown.

        Falls back on ``External id`` where the runtime call is not recorded.
        """
        table, host, device = self.events, self.host, self.device
        is_op = host.of_kind(Kind.CPU_OP)
        found = host.ancestor_where(is_op, device.launch)
        lost = np.flatnonzero(found < 0)
        external = table.ints("External id", missing=0)
        keys = external[host.row]
        ops = np.flatnonzero(is_op & (keys > 0))
        if len(lost) and len(ops):
            ops = ops[np.argsort(keys[ops], kind="stable")]
            wanted = external[device.row[lost]]
            place = np.minimum(np.searchsorted(keys[ops], wanted, side="right") - 1, len(ops) - 1)
            fits = (wanted > 0) & (place >= 0) & (keys[ops][place] == wanted)
            found[lost[fits]] = ops[place[fits]]
        return found

    @cached_property
    def _starter(self) -> IntArray:
        """Return for each device slice its launch, or its operator where launches are not recorded; -1 for neither."""
        return np.where(self.device.launch >= 0, self.device.launch, self.launch_op)

    @cached_property
    def main_track(self) -> int:
        """Return the thread that drives the program, -1 if there is no host thread.

        The one with step marks; else the one whose operators and regions outside autograd span most time.
        """
        table = self.events
        marks = np.flatnonzero(self.is_step_mark & table.of_kind(Kind.USER_ANNOTATION, Kind.CPU_OP))
        if len(marks):
            return self._first_of_most(np.bincount(table.track[marks]))
        host = self.host
        # Python frames span the whole life of every thread, helpers' too: they only count where nothing else is known.
        works = host.of_kind(Kind.CPU_OP, Kind.USER_ANNOTATION)
        top = np.flatnonzero(works & ~self._in_autograd[host.row])
        top = top[host.ancestor_where(works, host.parent[top]) < 0]
        if not len(top):
            top = np.flatnonzero(host.parent < 0)
        if not len(top):
            return -1
        spans = np.bincount(host.track[top], host.dur_ns[top])
        return self._first_of_most(np.where(np.bincount(host.track[top]) > 0, spans, -1))

    def _first_of_most(self, by_track: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> int:
        """Return the track with the largest figure; of several, not the one that the file happens to name first."""
        most = np.flatnonzero(by_track == by_track.max()).tolist()
        return int(min(most, key=lambda track: str(self.events.tracks[track])))

    @cached_property
    def steps(self) -> Steps:
        """Return the marked steps after warm-up, the last with all that it launched; else the window as one step."""
        table = self.events
        rows = np.flatnonzero(self.is_step_mark & table.of_kind(Kind.USER_ANNOTATION, Kind.CPU_OP))
        rows = rows[(table.track[rows] == self.main_track) & (table.dur_ns[rows] > 0)]
        rows = rows[np.argsort(table.ts_ns[rows], kind="stable")]
        if len(rows):
            # Some versions write a mark twice, as an operator and as a region.
            rows = rows[np.concatenate([[True], np.diff(table.ts_ns[rows]) > 0])]
        if not len(rows):
            start, end = self._unmarked_window
            return Steps(np.array([start], np.int64), np.array([end], np.int64), marked=False, names=("",))
        start = table.ts_ns[rows]
        end = np.minimum(table.end_ns[rows], np.append(start[1:], np.iinfo(np.int64).max))
        blind = self._blind(start, end)
        steps = self._to_device_end(start[blind:], end[blind:], tuple(table.names(rows[blind:])))
        steps = replace(steps, left_out_ns=tuple((end - start)[:blind].tolist()), blind=blind)
        return without_warm_up(steps, covered_ns(self.loader_waits, steps.start_ns, steps.end_ns))

    @cached_property
    def captured(self) -> BoolArray:
        """Return which host slices lie between the two ends of a graph's capture: what they launch does not run."""
        host = self.host
        bounds = np.flatnonzero(self.named(CAPTURE_CALL, Kind.RUNTIME))
        inside = np.zeros(len(host), bool)
        for track in set(host.track[bounds].tolist()):
            when = np.sort(host.start_ns[bounds[host.track[bounds] == track]])
            inside |= (host.track == track) & (np.searchsorted(when, host.start_ns, side="right") % 2 == 1)
        return inside

    def _blind(self, start: IntArray, end: IntArray) -> int:
        """Return how many first steps have lost all their kernels, as where a profiler's device side begins late."""
        launched = self.named(KERNEL_CALL, Kind.RUNTIME) & ~self.captured
        recorded = np.zeros(len(self.host), bool)
        recorded[self.device.launch[self.device.launch >= 0]] = True
        return count_blind(start, end, self.host.start_ns[launched], recorded[launched])

    def _to_device_end(self, start: IntArray, end: IntArray, names: tuple[str, ...]) -> Steps:
        """Return marked steps that reach to the end of the work they launched."""
        device = self.device
        linked = np.flatnonzero(self._starter >= 0)
        if not len(linked):
            return self._without_links(start, end, names)
        launched = self.host.start_ns[self._starter[linked]]
        step = np.searchsorted(start, launched, side="right") - 1
        inside = (step >= 0) & (launched < end[np.maximum(step, 0)])
        linked, step = linked[inside], step[inside]
        if not len(linked):
            return Steps(start, end, marked=True, names=names)
        last = max(int(end[-1]), int(device.end_ns[linked].max()))
        early = (last - int(end[-1])) / (last - int(start[0]))
        if early > RUNS_AHEAD_SHARE:
            first = np.full(len(start), last, np.int64)
            np.minimum.at(first, step, device.start_ns[linked])
            bound = np.minimum.accumulate(np.append(first, last)[::-1])[::-1]
            bound[0] = start[0]
            kept = bound[1:] > bound[:-1]
            start, end = bound[:-1][kept], bound[1:][kept]
            names = tuple(name for name, keep in zip(names, kept, strict=True) if keep)
        else:
            end = np.append(end[:-1], last)
        return Steps(start, end, marked=True, names=names, ends_early_share=early)

    def _without_links(self, start: IntArray, end: IntArray, names: tuple[str, ...]) -> Steps:
        """Return marked steps where nothing says what device work is theirs; one, where much of it comes after them."""
        device = self.device
        last = max(int(end[-1]), int(device.end_ns.max(initial=0)))
        early = (last - int(end[-1])) / (last - int(start[0]))
        if early <= RUNS_AHEAD_SHARE:
            return Steps(start, end, marked=True, names=names)
        return Steps(start[:1], np.array([last], np.int64), marked=False, names=("",), ends_early_share=early)

    @property
    def window(self) -> tuple[int, int]:
        """Return (start, end) in ns of the time that is looked at: from the first step to the last."""
        return int(self.steps.start_ns[0]), int(self.steps.end_ns[-1])

    @cached_property
    def _unmarked_window(self) -> tuple[int, int]:
        """Return (start, end) in ns: from what launches the first kernel to the last device end."""
        host, device = self.host, self.device
        if not len(device):
            if not len(host):
                return int(self.events.ts_ns.min(initial=0)), int(self.events.end_ns.max(initial=0))
            return int(host.start_ns.min()), int(host.end_ns.max())
        end = int(device.end_ns.max())
        linked = np.flatnonzero(self._starter >= 0)
        if not len(linked):
            return self._first_steady_start(), end
        launch = self._starter[linked[np.argmin(host.start_ns[self._starter[linked]])]]
        is_op = host.kind == Kind.CPU_OP
        outer = launch
        while (above := host.ancestor_where(is_op, host.parent[outer : outer + 1])[0]) >= 0:
            outer = above
        start = int(host.start_ns[outer])
        launched = int(host.start_ns[launch])
        first = int(device.start_ns[np.searchsorted(device.start_ns, launched).clip(max=len(device) - 1)])
        if first - launched - covered_ns(self.device_busy, launched, first) > QUEUED_BEFORE_NS:
            start = first
        if start > end:
            # The clocks disagree: all that is left is when the device worked.
            start = int(device.start_ns[0])
        next_batch = self.loader_waits
        early = next_batch[(next_batch[:, 0] < start) & (next_batch[:, 1] <= start)]
        return (int(early[0, 0]) if len(early) else start), end

    def _first_steady_start(self) -> int:
        """Return where device work without launches begins: after a few stray records and a long gap, if there are."""
        busy = self.device_busy
        if not len(busy):
            return int(self.device.start_ns[0])
        gap = busy[1:, 0] - busy[:-1, 1]
        before = np.cumsum(busy[:, 1] - busy[:, 0])[:-1]
        stray = (before <= STRAY_SHARE * total_ns(busy)) & (gap > busy[-1, 1] - busy[1:, 0])
        return int(busy[np.flatnonzero(stray)[-1] + 1, 0]) if stray.any() else int(busy[0, 0])

    @cached_property
    def loader_waits(self) -> Intervals:
        """Return when the main thread is inside the loader's next."""
        host = self.host
        named = self.named(is_loader, Kind.CPU_OP, Kind.USER_ANNOTATION)
        named |= self.named(LOADER_FRAME, Kind.PYTHON_FUNCTION)
        found = named & (host.track == self.main_track)
        return intervals(host.start_ns[found], host.end_ns[found])

    @cached_property
    def _in_autograd(self) -> BoolArray:
        return self.events.name_is(AUTOGRAD, Kind.CPU_OP, Kind.USER_ANNOTATION)
