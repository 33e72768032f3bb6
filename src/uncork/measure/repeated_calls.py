"""RepeatedCall: a line that calls a module over and over, and what recomputing those modules would free."""

import re
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from uncork.findings import Location
from uncork.measure.allocations import Allocations
from uncork.snapshot import CATEGORIES, Stacks

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

REPEATED_SHARE = 0.75
"""Of what a line's modules keep, so much must come from places that made a block in each call: then they are alike."""
WITHIN_SHARE = 0.85
"""A line further inside that keeps so much of the same is the one that repeats; the outer one calls it once."""
_MODULE = re.compile(r"torch[/\\]nn[/\\]modules[/\\]module\.py$")
_TORCH = re.compile(r"(^|[/\\])torch[/\\]")
_CHECKPOINT = re.compile(r"torch[/\\]utils[/\\]checkpoint\.py$")


@dataclass(frozen=True, eq=False)
class RepeatedCall:
    """What the modules called at one line keep at some moment.

    Args:
        location: The line.
        calls: How many modules, or calls of one.
        blocks: Which blocks they keep, then and in other steps, bool (blocks,).
        held_bytes: What they keep then.
        stays_share: Part of it that recomputing leaves: (at most, at least). Each call keeps its input, taken to be as
            large as its first or its last block; at most, one call's blocks are there again while it is recomputed.
    """

    location: Location
    calls: int
    blocks: BoolArray
    held_bytes: int
    stays_share: tuple[float, float]


@dataclass(eq=False)
class _Line:
    """A line with all that lies outside it, and what the modules called there keep.

    Args:
        frame: The line's frame.
        above: The next line outside it that calls a module.
        stacks: Places in the list of stacks that keep something at that moment.
        calls: How many modules, or calls of one.
        held_bytes: What they keep.
        ends: Size of the first and the last block of a call, the smaller first.
    """

    frame: int
    above: "_Line | None"
    stacks: list[int] = field(default_factory=list)
    calls: int = 0
    held_bytes: int = 0
    ends: list[int] = field(default_factory=list)

    @property
    def stays_share(self) -> tuple[float, float]:
        """Return what recomputing leaves: (at most, at least)."""
        least, most = (min(self.calls * end, self.held_bytes) for end in self.ends)
        return min(most + self.held_bytes // self.calls, self.held_bytes) / self.held_bytes, least / self.held_bytes

    @property
    def saved_bytes(self) -> int:
        """Return what recomputing frees at least."""
        return round(self.held_bytes * (1 - self.stays_share[0]))


def repeated_call(blocks: Allocations, moment: int, category: IntArray, stacks: Stacks) -> RepeatedCall | None:
    """Return the repeated call whose recomputation would free most at a moment, None where nothing repeats."""
    live = blocks.live(moment)
    kept = live[category[live] == CATEGORIES.index("activation")]
    used, back = np.unique(blocks.stack[kept], return_inverse=True)
    count = np.bincount(back.reshape(-1), minlength=len(used))
    size = np.bincount(back.reshape(-1), blocks.size_bytes[kept], minlength=len(used)).astype(np.int64)
    first = np.full(len(used), len(blocks.birth) * 2 + 1)
    np.minimum.at(first, back.reshape(-1), blocks.birth[kept])
    lines = _lines(used, stacks)
    for line in lines:
        mine = np.array(line.stacks, np.int64)
        line.calls = _calls(count[mine], size[mine])
        line.held_bytes = int(size[mine].sum())
        order = mine[np.argsort(first[mine])]
        line.ends = sorted(int(size[one] // count[one]) for one in (order[0], order[-1]))
    best = _innermost([line for line in lines if line.calls > 1 and line.held_bytes])
    if best is None:
        return None
    inside = (category == CATEGORIES.index("activation")) & np.isin(blocks.stack, used[best.stacks])
    return RepeatedCall(_location(best, stacks), best.calls, inside, best.held_bytes, best.stays_share)


def _lines(used: IntArray, stacks: Stacks) -> list[_Line]:
    """Return every line, told apart by all that lies outside it, that calls a module; outer ones first."""
    module = np.array([bool(_MODULE.search(file)) for file in stacks.file], bool)
    again = stacks.any_frame(np.array([bool(_CHECKPOINT.search(file)) for file in stacks.file], bool))
    python = [file.endswith(".py") for file in stacks.file]
    known: dict[tuple[int, int], int] = {}
    lines: dict[int, _Line] = {}
    for place, stack in enumerate(used.tolist()):
        if again[stack]:
            continue  # recomputed already
        frames = [frame for frame in stacks.frames(stack)[::-1].tolist() if python[frame]]
        node, above = 0, None
        for frame, inner in pairwise(frames):
            node = known.setdefault((node, frame), len(known) + 1)
            if module[inner] and not module[frame]:
                above = lines.setdefault(node, _Line(frame, above))
                above.stacks.append(place)
    return list(lines.values())


def _calls(count: IntArray, size: IntArray) -> int:
    """Return the largest number of calls in each of which most of the places made a block."""
    order = np.argsort(-count, kind="stable")
    reached = np.cumsum(size[order]) >= REPEATED_SHARE * size.sum()
    return int(count[order][reached.argmax()])


def _innermost(lines: list[_Line]) -> _Line | None:
    """Return what frees most; of lines inside one another that free about the same, the innermost."""
    best = max(lines, key=lambda line: line.saved_bytes, default=None)
    if best is None or not best.saved_bytes:
        return None
    least = WITHIN_SHARE * best.saved_bytes
    for line in lines:  # outer ones come first
        if line.saved_bytes >= least and line.calls >= best.calls and _is_inside(line, best):
            best = line
    return best


def _is_inside(line: _Line, outer: _Line) -> bool:
    above = line.above
    while above is not None and above is not outer:
        above = above.above
    return above is outer


def _location(line: _Line, stacks: Stacks) -> Location:
    """Return the line, or for a container of torch's own the line outside that calls it."""
    here = line
    while here.above is not None and _TORCH.search(stacks.file[here.frame]):
        here = here.above
    return Location(
        file=stacks.file[here.frame], line=int(stacks.line[here.frame]), function=stacks.function[here.frame]
    )
