"""What the main thread is in at each moment: its innermost slice, and the frame of the user's around it."""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.findings import Location
from uncork.frames import is_users_frame, split_frame
from uncork.intervals import Intervals, contains, moments
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def innermost_ns(timeline: Timeline, within: Intervals, part: Intervals) -> tuple[IntArray, BoolArray, IntArray]:
    """Return (host slices of the main thread, whether in the part, the time in which each is the innermost one there).

    Args:
        timeline: Whose slices.
        within: A merged set.
        part: A merged set that lies in it; a slice's times inside and outside of it stand apart.
    """
    host = timeline.host
    mine = np.flatnonzero(host.track == timeline.main_track)
    starts, ends = (when[contains(within, when)] for when in (host.start_ns[mine], host.end_ns[mine]))
    bounds = moments(starts, ends, within.ravel(), part.ravel())
    begin = bounds[:-1]
    inner = host.innermost(timeline.main_track, begin)
    kept = (inner >= 0) & contains(within, begin)
    key = inner[kept] * 2 + contains(part, begin[kept])
    spent = np.bincount(key, np.diff(bounds)[kept]).astype(np.int64)
    found = np.flatnonzero(spent)
    return found // 2, found % 2 == 1, spent[found]


def users_frames(timeline: Timeline) -> BoolArray:
    """Return for each host slice whether it is a Python frame of the user's own code."""
    return timeline.named(is_users_frame, Kind.PYTHON_FUNCTION)


def has_frames(timeline: Timeline) -> bool:
    """Return whether the recording holds Python frames on the main thread."""
    host = timeline.host
    frames = (host.kind == Kind.PYTHON_FUNCTION) & (host.track == timeline.main_track)
    return bool(frames.any())


def frame_location(name: str, op: str | None = None) -> Location:
    """Return the place that a Python frame's name tells."""
    file, line, function = split_frame(name)
    return Location(file=file or None, line=line or None, function=function or None, op=op)


def where(location: Location) -> str:
    """Return a place on one line: file, line and function, else the module, else the operator; empty if unknown.

    Of an absolute path the file's name is enough in a sentence; the finding's location has all of it.
    """
    if location.file:
        file = re.sub(r"^([A-Za-z]:)?[/\\].*[/\\]", "", location.file)
        line = file if location.line is None else f"{file}:{location.line}"
        return f"{line} ({location.function})" if location.function else line
    return location.module or location.op or location.function or ""
