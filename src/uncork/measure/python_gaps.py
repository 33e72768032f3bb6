"""PythonGaps: what Python does while no operator runs and the device waits, by the user's frame and by purpose."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import numpy.typing as npt

from uncork.driving import enclosing
from uncork.events import EventTable, Kind, starting, together
from uncork.findings import Location
from uncork.frames import is_others_frame, split_frame
from uncork.intervals import intersect, intervals, total_ns, union
from uncork.ledger import Ledger
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.host_pieces import frame_location, has_frames, innermost_ns, users_frames
from uncork.measure.sampled import sampled_line
from uncork.operators import SPEAKING, TORCH_FRAME, prepares_input, writes_out
from uncork.recording import StackSample
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

GAP_CAUSES = ("gc", "io", "py_prep", "py_short", "py_stack", "unexplained")
"""Causes of the ledger in which the host runs Python and no operator."""
MOST_SITES = 32

_LOGS = re.compile(
    starting("tqdm rich loguru comet_ml clearml neptune aim", "^/", "/") + "|<built-in method write of _io"
)


def _logs(name: str) -> bool:
    return bool(_LOGS.search(name.casefold().replace("\\", "/")))


def _found(pattern: str) -> Callable[[str], bool]:
    """Return a test whether a pattern is found in a name, whose folders are told by either slash."""
    search = re.compile(pattern).search
    return lambda name: search(name.replace("\\", "/")) is not None


Purposes = tuple[tuple[str, Callable[[str], bool]], ...]
_FILE = r"(/|\.py)"
_PYDEVD = rf"\w*{_FILE}"
PURPOSES: Purposes = tuple(
    (purpose, _found(test) if isinstance(test, str) else test)
    for purpose, test in (
        (
            "debugger",
            f"{starting('debugpy pdb bdb coverage trace', '^/', _FILE)}|{starting('pydevd _pydevd', '^/', _PYDEVD)}",
        ),
        (
            "profiler",
            f"torch/(autograd/profiler|profiler/)|{starting('cProfile line_profiler pyinstrument', '^/', _FILE)}",
        ),
        (
            "anomaly",
            rf"torch/(autograd/anomaly_mode|fx/traceback)\.py|{starting('traceback linecache', '^/', '[.]py')}",
        ),
        ("collect", "<built-in function collect>"),
        ("log", writes_out),  # asked elsewhere too: known by then
        ("log", _logs),
        ("prepare", prepares_input),
        ("optimizer", "torch/optim/"),
    )
)
"""What runs below a frame of that name is for; of nested frames the innermost decides."""
WRAPPERS: Purposes = (
    ("compiler", _found("torch/(_dynamo|_inductor|_functorch|fx)/")),
    (
        "module",
        _found(
            r"torch/nn/modules/module\.py\(\d+\): (_(wrapped_)?call_impl|_slow_forward|inner|__[gs]etattr__)"
            r"|torch/utils/hooks\.py"
        ),
    ),
)
"""Frames that call the program's own code: only their own time is theirs."""
NOT_OWN = ("torch", "dispatch")
"""What is for nothing else, and yet not the program's own work: in PyTorch's Python, or between two operators of one
function, where calling them takes the time."""
_OF_TORCH = re.compile(r"^(torch|uncork/capture)/")
_COMPREHENSION = re.compile(r"<(listcomp|setcomp|dictcomp|genexpr|lambda)>$")
_WALKS = _found(r"torch/nn/modules/module\.py")
"""What else a module does is what the program asked it for: walking over its parameters, collecting its state."""
_LEAVES: Purposes = (
    *WRAPPERS,
    ("torch", lambda name: bool(_OF_TORCH.search(name) or TORCH_FRAME.search(name)) and not _WALKS(name)),
)


@dataclass(frozen=True)
class GapSite:
    """Python time of one place for one purpose.

    Args:
        purpose: One of `PURPOSES`, `WRAPPERS` or `NOT_OWN`, or empty: the program's own work.
        location: The user's frame around it, the outermost that calls no operator; nothing where none is the user's.
        share: Share of the time in which Python runs and no operator.
        of_library: The place is a library's, whose own loop makes the steps.
    """

    purpose: str
    location: Location
    share: float
    of_library: bool = False


@dataclass(frozen=True)
class PythonGaps(Measurement):
    """Python time between operators, in shares of it; `uncork.measure.step_ledger` says how long it is.

    Args:
        sites: The largest first.
        share_of_step: Share of the steps that it is in the recording it was seen in.
    """

    sites: tuple[GapSite, ...]
    share_of_step: float

    @classmethod
    def of(cls, rank: Rank) -> "PythonGaps":
        """Return the Python time of a rank; without Python frames its places are unknown."""
        timeline = rank.deep
        if not has_frames(timeline):
            raise MissingEvidence("stacks")
        ledger = rank.deep_ledger
        gaps = gap_time(ledger)
        sites = _sites(timeline, gaps, ledger.intervals.get("py_short", intervals([], [])))
        step_ns = int(ledger.step_ns.sum())
        exact = [_exact(site, rank.recording.stacks) for site in sites[:MOST_SITES]]
        return cls(tuple(exact), total_ns(gaps) / step_ns if step_ns else 0.0)

    def share(self, purpose: str) -> float:
        """Return the share of the Python time that is for a purpose."""
        return sum(site.share for site in self.sites if site.purpose == purpose)

    def part_ns(self, purpose: str, gaps_ns: float, step_ns: float) -> float:
        """Return the time per step that is for a purpose.

        Args:
            purpose: One of `PURPOSES` or `WRAPPERS`, or empty.
            gaps_ns: Time per step in which Python may run, by the ledger that durations are taken from.
            step_ns: Step time there. Gaps that the recording with frames does not have are not Python's: that recording
                slows Python down, so its share is the most there can be.
        """
        return self.share(purpose) * min(gaps_ns, self.share_of_step * step_ns)

    def top(self, purpose: str) -> GapSite | None:
        """Return the place that takes most for a purpose, the user's own before unknown ones."""
        found = [site for site in self.sites if site.purpose == purpose]
        return next((site for site in found if site.location.file), found[0] if found else None)


def gap_time(ledger: Ledger) -> IntArray:
    """Return when the host runs Python and no operator, as far as it costs the step."""
    parts = [ledger.intervals[cause] for cause in GAP_CAUSES if cause in ledger.intervals]
    return union(*parts) if parts else intervals([], [])


def purpose_of(name: str, among: Purposes = PURPOSES) -> str:
    """Return what a frame is there for, or empty where its name does not say."""
    return next((purpose for purpose, test in among if test(name)), "")


def purposes(table: EventTable) -> npt.NDArray[np.int8]:
    """Return for each text the place in `PURPOSES` of what an event of that name is for, -1 where it does not say."""
    codes = np.full(len(table.strings), -1, np.int8)
    for code, (_, test) in reversed(list(enumerate(PURPOSES))):
        codes[table.fitting(test, *SPEAKING)] = code
    return codes


def _in_file(name: str) -> bool:
    return bool(split_frame(name)[0])


def _exact(site: GapSite, samples: tuple[StackSample, ...]) -> GapSite:
    """Return a site with the line of its function that was sampled most."""
    place = site.location
    if not place.file or not place.function:
        return site
    line = sampled_line(place.file, place.line or 0, place.function, samples)
    return replace(site, location=replace(place, line=line or None))


def _purposeful(timeline: Timeline, in_file: BoolArray) -> BoolArray:
    """Return which slices say what they are for.

    Optimizers and loaders of torch name their own regions; such a region is no profiler that the program runs.
    """
    host = timeline.host
    codes = purposes(timeline.events)
    told = (codes >= 0)[host.name]
    profiles = (codes == [purpose for purpose, _ in PURPOSES].index("profiler"))[host.name]
    places = np.flatnonzero(profiles)
    caller = host.ancestor_where(in_file & ~profiles, host.parent[places])
    torchs = timeline.named(_OF_TORCH, *SPEAKING)
    told[places[(caller >= 0) & torchs[np.maximum(caller, 0)]]] = False
    return told


def _apart(timeline: Timeline, frames: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Return which of some frames call no operator, and which functions are outermost of them."""
    host = timeline.host
    free = frames & ~enclosing(host, host.of_kind(Kind.CPU_OP, Kind.RUNTIME))
    functions = free & ~timeline.named(_COMPREHENSION, Kind.PYTHON_FUNCTION)
    places = np.flatnonzero(functions)
    functions[places[host.ancestor_where(functions, host.parent[places]) >= 0]] = False
    return free, functions


def _owners(timeline: Timeline, inner: IntArray) -> tuple[IntArray, BoolArray]:
    """Return (the frame that each slice's time is told by, whether it lies in a function that calls no operator).

    That is the user's frame around it. Where a library's loop makes the steps, the user's line stands for the whole
    training: then the library's own function is told, unless it has called one of the user's.
    """
    host, users = timeline.host, users_frames(timeline)
    apart, functions = _apart(timeline, users)
    outermost, nearest = host.ancestor_where(functions, inner), host.ancestor_where(users, inner)
    owner, is_apart = np.where(outermost >= 0, outermost, nearest), host.ancestor_where(apart, inner) >= 0
    theirs = timeline.named(is_others_frame, Kind.PYTHON_FUNCTION)
    steps = timeline.steps
    drives = theirs & (host.start_ns <= steps.start_ns[0]) & (host.end_ns >= steps.end_ns[-1])
    driver = host.ancestor_where(drives, inner)
    driven = (driver >= 0) & (host.depth[np.maximum(driver, 0)] > np.where(nearest >= 0, host.depth[nearest], -1))
    if driven.any():
        apart, functions = _apart(timeline, theirs & ~drives)
        outermost = host.ancestor_where(functions, inner)
        told = np.where(outermost >= 0, outermost, host.ancestor_where(theirs, inner))
        owner = np.where(driven, told, owner)
        is_apart |= driven & (host.ancestor_where(apart, inner) >= 0)
    return owner, is_apart


def _sites(timeline: Timeline, gaps: IntArray, short: IntArray) -> list[GapSite]:
    """Return the Python time by purpose and by frame of the user's.

    Args:
        timeline: A recording with frames.
        gaps: When the host runs Python and no operator.
        short: That part of it which is no longer than the gaps between two calls are.
    """
    host, table = timeline.host, timeline.events
    inner, is_short, time = innermost_ns(timeline, gaps, short)
    total = total_ns(intersect(gaps, timeline.steps.intervals))
    if not len(inner) or not total:
        return []
    name = host.name.astype(np.int64)

    def named(places: IntArray) -> IntArray:
        return np.where(places >= 0, name[places], -1)

    frame, is_apart = _owners(timeline, inner)
    owner, between = named(frame), (is_short & ~is_apart).astype(np.int64)
    in_file = timeline.named(_in_file, *SPEAKING)
    reason = named(host.ancestor_where(_purposeful(timeline, in_file), inner))
    source = named(host.ancestor_where(in_file, inner))
    codes = purposes(table)
    of_leaf = cache(lambda leaf: purpose_of(table.strings.text(leaf), _LEAVES) if leaf >= 0 else "")
    first, back = together(owner, reason, source, between)
    used = np.column_stack([owner, reason, source, between])[first]
    sums = np.bincount(back, time)
    merged: dict[tuple[int, str], float] = {}
    for (who, why, leaf, is_between), time_ns in zip(used.tolist(), sums.tolist(), strict=True):
        purpose = PURPOSES[codes[why]][0] if why >= 0 else ""
        purpose = purpose or of_leaf(leaf) or ("dispatch" if is_between else "")
        merged[who, purpose] = merged.get((who, purpose), 0.0) + time_ns
    sites = [
        GapSite(
            purpose=why,
            location=frame_location(table.strings.text(who)) if who >= 0 else Location(),
            share=min(time_ns / total, 1.0),
            of_library=who >= 0 and is_others_frame(table.strings.text(who)),
        )
        for (who, why), time_ns in merged.items()
    ]
    return sorted(sites, key=lambda site: (-site.share, site.purpose, str(site.location)))
