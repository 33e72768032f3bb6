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


@dataclass
class _Line:
    """A line with all that lies outside it, while blocks are counted."""

    frame: int
    above: "_Line | None"
    stacks: list[int] = field(default_factory=list)


def repeated_call(blocks: Allocations, moment: int, category: IntArray, stacks: Stacks) -> RepeatedCall | None:
    """Return the repeated call whose recomputation would free most at a moment, None where nothing repeats."""
    live = blocks.live(moment)
    kept = live[category[live] == CATEGORIES.index("activation")]
    used, back = np.unique(blocks.stack[kept], return_inverse=True)
    count = np.bincount(back.reshape(-1), minlength=len(used))
    size = np.bincount(back.reshape(-1), blocks.size_bytes[kept], minlength=len(used)).astype(np.int64)
    first = np.full(len(used), len(blocks.birth) * 2 + 1)
    np.minimum.at(first, back.reshape(-1), blocks.birth[kept])
    found: list[tuple[int, RepeatedCall, _Line]] = []
    for line in _lines(used, stacks):
        mine = np.array(line.stacks, np.int64)
        calls = _calls(count[mine], size[mine])
        if calls < 2:
            continue
        held = int(size[mine].sum())
        order = mine[np.argsort(first[mine])]
        ends = [int(size[one] // count[one]) for one in (order[0], order[-1])]
        stays = (min(calls * max(ends) + held // calls, held) / held, min(calls * min(ends), held) / held)
        inside = (category == CATEGORIES.index("activation")) & np.isin(blocks.stack, used[mine])
        call = RepeatedCall(_location(line, stacks), calls, inside, held, stays)
        found.append((round(held * (1 - stays[0])), call, line))
    return _innermost(found)


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


def _innermost(found: list[tuple[int, RepeatedCall, _Line]]) -> RepeatedCall | None:
    """Return what frees most; of lines inside one another that free about the same, the innermost."""
    if not found:
        return None
    saved, best, line = max(found, key=lambda one: one[0])
    for other, call, inner in found:
        if other >= WITHIN_SHARE * saved and call.calls >= best.calls and _is_inside(inner, line):
            best, line = call, inner
    return best if saved > 0 else None


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
