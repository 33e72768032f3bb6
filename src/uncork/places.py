"""Places in the user's code: a file, a function, and the line where a call was made.

Until 2.14 torch writes a function's first line into each of its frames. The recorder samples the line that runs while
it records stacks; whatever call holds such a moment was made from that line.
"""

import re
from collections import Counter, defaultdict

import numpy as np
import numpy.typing as npt

from uncork.frames import is_users_frame, same_file, split_frame
from uncork.recording import Moments
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]

AGREED_SHARE = 0.8
"""A line is named where four in five moments agree; a function may make the same call on several lines."""


@dataclass(frozen=True)
class Place:
    """A place in the user's code.

    Args:
        file: Source file, as the recording writes it.
        line: Line in it; None where only a whole file's code is known, not which line of it.
        function: Function around it.
        exact: Whether `line` is the line that ran; else it is the first one of the function.
    """

    file: str
    line: int | None
    function: str
    exact: bool

    @property
    def text(self) -> str:
        """Return the place in one line, as people write it."""
        line = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{line} {self.function}".rstrip()


def place_of(frame: str, site: str, sampled: int) -> Place:
    """Return the place of a user's frame, exact where the call inside it, or a sample, tells from which line."""
    file, line, function = split_frame(frame)
    called_file, _, called_line = site.rpartition(":")
    if called_line.isdecimal() and called_file == file:
        return Place(file, int(called_line), function, exact=True)
    first = None if function == "<module>" else line  # there torch writes where the program was when recording began
    return Place(file, sampled or first, function, exact=bool(sampled))


_OF_TORCH_OR_PYTHON = re.compile(r"(^|/)(torch|uncork/capture|lib/python[\d.]+)/")


def is_library_frame(name: str) -> bool:
    """Return whether a frame is at least outside torch and Python: all there is when a library's own script runs."""
    file = split_frame(name)[0]
    return bool(file) and "/" in file and not _OF_TORCH_OR_PYTHON.search(file)


def begins_outermost(stack: list[str]) -> bool:
    """Return whether a stack's text begins with the outermost frame (torch 1.12) instead of the innermost."""
    if stack[-1].endswith("<module>") or not is_users_frame(stack[0].strip()):
        return False
    return stack[0].endswith("<module>") or not is_users_frame(stack[-1].strip())


def sampled_lines(
    moments: Moments, start_ns: IntArray, end_ns: IntArray, call: IntArray, frames: list[str]
) -> IntArray:
    """Return the line that each kind of call was made from, 0 where nothing was seen or moments disagree.

    Args:
        moments: What was sampled.
        start_ns: Starts of the calls that user's frames made on the sampled thread, ascending and apart, (calls,).
        end_ns: Their ends, (calls,).
        call: Kind of each call: the same callee in the same function, index in `frames`, (calls,).
        frames: The caller's frame of each kind, as the trace names it.

    Returns:
        Lines, (kinds,).
    """
    lines = np.zeros(len(frames), np.int64)
    if not len(start_ns):
        return lines
    at = np.searchsorted(start_ns, moments.time_ns, side="right") - 1
    inside = (at >= 0) & (moments.time_ns <= end_ns[at])
    seen: defaultdict[int, Counter[int]] = defaultdict(Counter)
    callers = [split_frame(frame) for frame in frames]
    for kind, site in zip(call[at[inside]].tolist(), moments.site[inside].tolist(), strict=True):
        file, line, function = moments.sites[site]
        caller_file, _, caller = callers[kind]
        if function == caller and same_file(file, caller_file):
            seen[kind][line] += 1
    for kind, counts in seen.items():
        line, count = counts.most_common(1)[0]
        lines[kind] = line if count >= AGREED_SHARE * counts.total() else 0
    return lines
