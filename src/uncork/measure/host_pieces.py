"""What the main thread is in at each moment: its innermost slice, and the frame of the user's around it."""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.findings import Location
from uncork.frames import is_users_frame, split_frame
from uncork.intervals import moments
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Stretches of the main thread with one innermost slice each; arrays have shape (pieces,).

    Args:
        start_ns: Start.
        end_ns: End.
        slice: Index in the timeline's host slices.
    """

    start_ns: IntArray
    end_ns: IntArray
    slice: IntArray


def main_pieces(timeline: Timeline) -> Pieces:
    """Return the stretches of the main thread, those inside no slice left out."""
    host = timeline.host
    mine = np.flatnonzero(host.track == timeline.main_track)
    bounds = moments(host.start_ns[mine], host.end_ns[mine])
    if len(bounds) < 2:
        none = np.empty(0, np.int64)
        return Pieces(none, none, none)
    inner = host.innermost(np.full(len(bounds) - 1, timeline.main_track), bounds[:-1])
    found = inner >= 0
    return Pieces(bounds[:-1][found], bounds[1:][found], inner[found])


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
        line = f"{file}:{location.line}"
        return f"{line} ({location.function})" if location.function else line
    return location.module or location.op or location.function or ""
