"""Compiled: what torch.compile does in the recording: regions that run, guards, compilations, breaks."""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.findings import Location
from uncork.frames import split_frame
from uncork.intervals import intersect, intervals, subtract, total_ns
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.operators import is_compile
from uncork.records import dataclass
from uncork.timeline import Timeline

REGION = re.compile(r"^Torch-Compiled Region(?:: (?P<frame>\d+)/(?P<turn>\d+))?")
COMPILE_ID = re.compile(r"compile_id=(?P<frame>\d+)/(?P<turn>\d+)")
_RESUMES = re.compile(r"torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d+)")
HOST_CAUSES = ("dispatch", "tiny", "py_short", "py_stack", "unexplained")
"""Causes of the ledger in which the host's own pace is what costs."""
_CACHE_LOOKUP = re.compile(r"TorchDynamo Cache Lookup")
_PIECE = re.compile(r"^(CompiledFunction$|## Call CompiledFxGraph)")
"""What runs compiled code inside a region: where a graph breaks, the region goes on, and the next one lies in it."""


@dataclass(frozen=True)
class Compiled(Measurement):
    """What torch.compile does.

    Args:
        regions: Compiled regions run per step.
        frames: Different code frames among them (0 where the names do not tell).
        compile_ns: Time per step in compiling.
        compilations: Compilations in all steps.
        recompilations: Those of a frame that had been compiled before.
        lookup_ns: Time per step in checking guards.
        between_ns: Time per step between pieces of compiled code of one step in which the host holds things up.
        breaks: Where compiled code was left and entered again, by the names of the resumed functions.
    """

    regions: float
    frames: int
    compile_ns: int
    compilations: int
    recompilations: int
    lookup_ns: int
    between_ns: int
    breaks: tuple[Location, ...]

    @classmethod
    def of(cls, rank: Rank) -> "Compiled":
        """Return what is compiled in a rank's steps; without host operators nothing can be seen of it."""
        timeline = rank.timeline
        host, table = timeline.host, timeline.events
        is_op = host.of_kind(Kind.CPU_OP, Kind.USER_ANNOTATION)
        if not is_op.any():
            raise MissingEvidence("host")
        is_op &= timeline.in_steps
        count = max(len(timeline.steps), 1)
        region = np.flatnonzero(is_op & timeline.named(REGION, Kind.CPU_OP, Kind.USER_ANNOTATION))
        working = is_op & timeline.named(is_compile, Kind.CPU_OP, Kind.USER_ANNOTATION)
        lookups = is_op & timeline.named(_CACHE_LOOKUP, Kind.CPU_OP, Kind.USER_ANNOTATION)
        working &= ~lookups
        turns = _turns(set(table.names(host.row[working])))
        return cls(
            regions=len(region) / count,
            frames=len(
                {found["frame"] for name in set(table.names(host.row[region])) if (found := REGION.match(name))}
                - {None}
            ),
            compile_ns=total_ns(intervals(host.start_ns[working], host.end_ns[working])) // count,
            compilations=len(turns),
            recompilations=sum(turn > 0 for _, turn in turns),
            lookup_ns=total_ns(intervals(host.start_ns[lookups], host.end_ns[lookups])) // count,
            between_ns=_between(rank, region) // count,
            breaks=_breaks(rank.deep),
        )

    @property
    def used(self) -> bool:
        """Return whether compiled code runs or is made."""
        return self.regions > 0 or self.compilations > 0 or self.compile_ns > 0


def _turns(names: set[str]) -> set[tuple[int, int]]:
    """Return the (frame, turn) pairs that were compiled; turn 0 is a frame's first compilation."""
    return {(int(found["frame"]), int(found["turn"])) for name in names if (found := COMPILE_ID.search(name))}


def _between(rank: Rank, region: npt.NDArray[np.int64]) -> int:
    """Return how long the host holds things up after one piece of compiled code and before the next of the same step.

    A region that holds others was left for them: of it only its own pieces are compiled code, where those are named.
    """
    timeline, ledger = rank.timeline, rank.ledger
    host = timeline.host
    step = timeline.steps.at(host.start_ns[region])
    whole = [
        (int(host.start_ns[inside].min()), int(host.end_ns[inside].max()))
        for one in sorted(set(step.tolist()))
        if len(inside := region[step == one]) > 1
    ]
    if not whole:
        return 0
    piece = np.flatnonzero(timeline.named(_PIECE, Kind.CPU_OP, Kind.USER_ANNOTATION))
    order = region[np.argsort(host.start_ns[region], kind="stable")]
    left = np.append(host.start_ns[order[1:]] < host.end_ns[order[:-1]], False)
    compiled = np.concatenate([piece, order[~left] if len(piece) else order])
    start, end = zip(*whole, strict=True)
    outside = subtract(intervals(start, end), intervals(host.start_ns[compiled], host.end_ns[compiled]))
    parts = [ledger.intervals[cause] for cause in HOST_CAUSES if cause in ledger.intervals]
    return sum(total_ns(intersect(part, outside)) for part in parts)


def _breaks(timeline: Timeline) -> tuple[Location, ...]:
    """Return where compiled functions were left, from the functions torch makes to resume them."""
    table = timeline.events
    frames = np.flatnonzero(table.fitting(_RESUMES, Kind.PYTHON_FUNCTION))
    found: dict[tuple[str, int], Location] = {}
    for index in frames.tolist():
        file, _, function = split_frame(table.strings.text(index))
        match = _RESUMES.search(function)
        if match:
            line = int(match["line"])
            found[file, line] = Location(file=file or None, line=line, function=match["function"])
    return tuple(found[key] for key in sorted(found))
