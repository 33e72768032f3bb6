"""The threads that drive a step, and what their events are."""

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt

from uncork.events import Kind, distinct
from uncork.intervals import Intervals, contains, intervals, moments, subtract, union
from uncork.nesting import HostSlices
from uncork.operators import (
    AUTOGRAD,
    CLASSES,
    INPUT_OUTPUT_REGION,
    OVERHEAD,
    SPEAKING,
    TORCH_FRAME,
    operator_classes,
    prepares_input,
    waits_for_others,
    writes_out,
)
from uncork.timeline import Timeline, once

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

REGION_SLICES = 200
"""An operator of an unknown name that encloses more is a part of the program that its author named, as versions before
torch 1.13 record them; functions with a backward pass of their own enclose up to 123 in the labelled traces."""

_NAMESPACE = re.compile("::")
_BUILT_IN = re.compile("^<built-in ")

_OVERHEAD = np.array([kind in OVERHEAD for kind in (*CLASSES, "")])
"""By class; the last stands for what is of none, -1."""

STALL_NS = 5_000_000
"""Longer than any call in PyTorch's Python that records nothing below it; time slices of a busy machine are 3 ms up."""


class HostThreads:
    """What the slices of the driving threads are: those whose work a step waits for.

    Args:
        timeline: Whose slices.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.host = timeline.host
        table, host = timeline.events, timeline.host
        self.kind = host.kind
        self.of_class = operator_classes(table)[host.name]
        self.is_op = host.of_kind(Kind.CPU_OP, Kind.USER_ANNOTATION)
        unknown = self.named("compute") & ~timeline.named(_NAMESPACE, Kind.CPU_OP, Kind.USER_ANNOTATION)
        if unknown.any():
            self.of_class[unknown & (host.enclosed() >= REGION_SLICES)] = CLASSES.index("region")
        self.works = (self.kind == Kind.RUNTIME) | (
            (self.kind == Kind.CPU_OP) & ~self.named("region") & ~self.named("optimizer")
        )
        self.frame = self.kind == Kind.PYTHON_FUNCTION
        self.tracks = driving_tracks(timeline)
        self.driving = on_driving_tracks(timeline)
        self.prepares = timeline.named(prepares_input, *SPEAKING)
        self.writes = self.frame & timeline.named(writes_out, *SPEAKING)
        self.writes |= timeline.named(INPUT_OUTPUT_REGION, Kind.CPU_OP, Kind.USER_ANNOTATION)

    def named(self, kind: str) -> BoolArray:
        """Return which slices are operators or regions of a class."""
        found: BoolArray = self.is_op & (self.of_class == CLASSES.index(kind))
        return found

    @property
    def overhead(self) -> BoolArray:
        """Return which slices are of a class whose own time is never work on data."""
        found: BoolArray = self.is_op & _OVERHEAD[self.of_class]
        return found

    def call(self, pattern: re.Pattern[str]) -> BoolArray:
        """Return which slices are runtime calls of a name."""
        return self.timeline.named(pattern, Kind.RUNTIME)

    def op(self, pattern: re.Pattern[str]) -> BoolArray:
        """Return which slices are operators of a name."""
        return self.timeline.named(pattern, Kind.CPU_OP, Kind.USER_ANNOTATION)

    def spans(self, wanted: BoolArray, *, elsewhere: bool = False) -> Intervals:
        """Return the merged spans of some slices on the driving threads, or on all others."""
        rows = np.flatnonzero(wanted & (~self.driving if elsewhere else self.driving))
        return intervals(self.host.start_ns[rows], self.host.end_ns[rows])

    @property
    def python(self) -> Intervals:
        """Return when some driving thread is in Python frames, but for stalls and for waiting.

        A stall: PyTorch's own frame stands still, without an event, for `STALL_NS`; the machine did something else.
        """
        host, active, stalls = self.host, [], []
        with_frames, _ = distinct(host.track[self.frame & self.driving], len(self.timeline.events.tracks))
        for track in with_frames.tolist():
            own = slice(*np.searchsorted(host.track, [track, track + 1]))
            start, end = host.start_ns[own], host.end_ns[own]
            after = np.append(start[1:], end.max())
            quiet = np.flatnonzero(after - start >= STALL_NS)  # nothing begins for so long
            if len(quiet):
                gaps = intervals(start[quiet], after[quiet])
                bounds = moments(start[quiet], after[quiet], end[contains(gaps, end)])
                long = np.flatnonzero((np.diff(bounds) >= STALL_NS) & contains(gaps, bounds[:-1]))
                inner = host.innermost(track, bounds[long])
                still = (inner >= 0) & self._of_torch[inner]
                stalls.append(intervals(bounds[long[still]], bounds[long[still] + 1]))
            frame, waits = self.frame[own], self.waits[own]
            active.append(subtract(intervals(start[frame], end[frame]), intervals(start[waits], end[waits])))
        return subtract(union(*active), union(*stalls))

    @cached_property
    def waits(self) -> BoolArray:
        """Return which frames wait for another thread, process or machine."""
        return self.timeline.named(waits_for_others, Kind.PYTHON_FUNCTION)

    @cached_property
    def _of_torch(self) -> BoolArray:
        """Return which frames are PyTorch's or the recorder's, built-ins that call an operator themselves included."""
        found = self.timeline.named(TORCH_FRAME, Kind.PYTHON_FUNCTION)
        above = self.host.parent[self.works]
        calls = np.zeros(len(self.host), bool)
        calls[above[above >= 0]] = True
        return found | (calls & self.timeline.named(_BUILT_IN, Kind.PYTHON_FUNCTION))

    @property
    def collects(self) -> Intervals:
        """Return when Python's garbage collector runs: on whatever thread, it holds them all."""
        rows = self.kind == Kind.GC
        return intervals(self.host.start_ns[rows], self.host.end_ns[rows])


@once
def driving_tracks(timeline: Timeline) -> list[int]:
    """Return the main thread, autograd's, and those that launch device work; other threads hold up no step."""
    host, device = timeline.host, timeline.device
    drive = timeline.named(AUTOGRAD, Kind.CPU_OP, Kind.USER_ANNOTATION)
    drive[device.launch[device.launch >= 0]] = True
    tracks, _ = distinct(host.track[drive], len(timeline.events.tracks))
    return sorted({timeline.main_track, *tracks.tolist()})


@once
def on_driving_tracks(timeline: Timeline) -> BoolArray:
    """Return which host slices are on the threads that drive a step."""
    drives = np.zeros(len(timeline.events.tracks) + 1, bool)  # the last stands for "no track", -1
    drives[driving_tracks(timeline)] = True
    found: BoolArray = drives[timeline.host.track]
    return found


def enclosing(host: HostSlices, wanted: BoolArray) -> BoolArray:
    """Return which slices are wanted or enclose, at any depth, one that is."""
    found = wanted.copy()
    place = host.parent[wanted]
    while len(place := place[place >= 0]):
        above = np.flatnonzero(_at(place, len(host)) & ~found)
        found[above] = True
        place = host.parent[above]
    return found


def _at(places: IntArray, size: int) -> BoolArray:
    marked = np.zeros(size, bool)
    marked[places] = True
    return marked


def group_medians(group: IntArray, values: IntArray, groups: int, *, upper: bool = False) -> IntArray:
    """Return the lower (or upper) median of the values of each group, 0 for groups without any.

    Args:
        group: Of each value.
        values: Not negative.
        groups: Number of groups.
        upper: Of two in the middle the larger one.
    """
    if not len(values):
        return np.zeros(groups, np.int64)
    count = np.bincount(group, minlength=groups)
    middle = np.clip(np.cumsum(count) - count + (count - (not upper)) // 2, 0, len(values) - 1)
    span = int(values.max()) + 1
    if span * groups < 1 << 62:
        # One sort of numbers that hold both is many times as fast as sorting places by both.
        found: IntArray = np.sort(group * span + values)[middle] - np.arange(groups) * span
    else:
        found = values[np.lexsort((values, group))][middle]
    return np.where(count > 0, found, 0)
