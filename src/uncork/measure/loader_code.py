"""LoaderCode: which function and line of the user's costs what inside the loader."""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from uncork.driving import group_medians
from uncork.events import Kind
from uncork.findings import Location
from uncork.frames import is_users, is_users_frame, split_frame
from uncork.host_causes import STALLED_CALL_NS, STALLED_RATIO_ONE_STEP
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.host_pieces import where
from uncork.measure.loader import iterator, loads_nothing, next_calls, under
from uncork.measure.loader_functions import MOST_OF, call_named, parts_of_functions
from uncork.measure.loader_words import decoded_as, stage_of
from uncork.measure.sampled import sampled_line
from uncork.places import AGREED_SHARE
from uncork.recording import StackSample
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]

MOST_PARTS = 32
ONE_LINE = "@loader.one_line"
"""What samples tell of a function's calls: the line."""
_LOW_LEVEL = frozenset(("torch", "numpy", "scipy", "PIL", "cv2", "uncork", *sys.stdlib_module_names))
SELDOM_SHARE = 0.05
"""Calls of one name that are so long more often than one in twenty may be large items, and no stalls."""
_LEAST_SAMPLES = 10
"""Fewer samples than this say nothing about shares."""


@dataclass(frozen=True)
class Part:
    """Time of one function inside the loader, without what other functions of the user take below it.

    Args:
        file: Source file; empty for the libraries' own time.
        line: The line that ran most where it was sampled, else the function's first.
        function: Its name.
        stage: What is done in that time: ``read decode augment collate to_tensor``, or empty.
        share: Share of the loading time.
        call: What it calls that takes most of the function's time, as a name or `ONE_LINE`; empty where nothing does.
    """

    file: str
    line: int
    function: str
    stage: str
    share: float
    call: str = ""

    @property
    def location(self) -> Location:
        """Return where it is."""
        return Location(file=self.file or None, line=self.line or None, function=self.function or None)

    @property
    def where(self) -> str:
        """Return where it is, on one line."""
        return where(self.location)


@dataclass(frozen=True)
class LoaderCode(Measurement):
    """The loading time by function and by what is done in it.

    Args:
        parts: The largest first; shares sum to at most 1.
        decoded: What functions that run decode, by their names: ``packed pictures text``.
    """

    parts: tuple[Part, ...]
    decoded: tuple[str, ...] = ()

    @classmethod
    def of(cls, rank: Rank) -> "LoaderCode":
        """Return the loading code of a rank: from frames, else from cProfile, else from sampled stacks."""
        samples = rank.recording.stacks
        # With workers the main process only waits: what its frames show is no loading.
        alone = iterator(rank.deep, next_calls(rank.deep)) != "multi"
        parts = _from_frames(rank.deep) if alone else []
        if not parts and alone and rank.recording.functions is not None:
            parts = [Part(*one) for one in parts_of_functions(rank.recording.functions)]
        if not parts:
            parts = _from_samples(samples)
        if not parts and alone:
            parts = _from_frames(rank.deep, bare=True)
        if not parts and not loads_nothing(rank):
            raise MissingEvidence("stacks")
        parts.sort(key=lambda part: (-part.share, part.file, part.line, part.stage))
        exact = [
            replace(part, line=sampled_line(part.file, part.line, part.function, samples))
            for part in parts[:MOST_PARTS]
        ]
        return cls(tuple(exact), _decoded(rank, alone=alone))

    def share(self, stage: str) -> float:
        """Return the share of the loading time in one stage."""
        return sum(part.share for part in self.parts if part.stage == stage)

    @property
    def waits(self) -> bool:
        """Return whether most of the loading waits for disk or network instead of computing."""
        return self.share("read") > 0.5

    def top(self, stage: str | None = None) -> Part | None:
        """Return the user's function that costs most (in one stage), all its stages together; None if unknown."""
        sums: dict[tuple[str, int, str], float] = {}
        calls: dict[tuple[str, int, str], str] = {}
        for part in self.parts:
            if part.file and stage in (None, part.stage):
                key = (part.file, part.line, part.function)
                sums[key], calls[key] = sums.get(key, 0.0) + part.share, calls.get(key) or part.call
        if not sums:
            return None
        key = max(sums, key=lambda one: sums[one])
        return Part(*key, stage or "", sums[key], calls[key])


def _from_frames(timeline: Timeline, *, bare: bool = False) -> list[Part]:
    """Return the loading time by the user's frames and by stage; empty where the trace has no frames of the user's.

    Args:
        timeline: A recording with frames.
        bare: Frames of PyTorch's own will do: nothing else may run there, as over tensors in memory.
    """
    host, table = timeline.host, timeline.events
    places = next_calls(timeline)
    inside = under(timeline, places)
    inner = np.flatnonzero(inside & (host.self_ns > 0))
    mine = inside & timeline.named(is_users_frame, Kind.PYTHON_FUNCTION)
    if not mine.any():
        mine = inside & timeline.named(_is_high_level, Kind.PYTHON_FUNCTION)
    if not len(inner) or not (mine.any() or (bare and (inside & host.of_kind(Kind.PYTHON_FUNCTION)).any())):
        return []
    staged = inside & timeline.named(_has_stage)
    owner, kind = host.ancestor_where(mine, inner), host.ancestor_where(staged, inner)
    name_of = host.name.astype(np.int64)
    own_ns = _undisturbed(name_of[inner], host.self_ns[inner])
    total = int(host.dur_ns[places].sum() - host.self_ns[inner].sum() + own_ns.sum())
    sums: dict[tuple[int, str], int] = {}
    pairs = np.column_stack([np.where(owner >= 0, name_of[owner], -1), np.where(kind >= 0, name_of[kind], -1)])
    used, back = np.unique(pairs, axis=0, return_inverse=True)
    times = np.bincount(back.reshape(-1), own_ns).astype(np.int64)
    calls = _calls(pairs[:, 0], name_of[inner], own_ns)
    for (who, what), time_ns in zip(used.tolist(), times.tolist(), strict=True):
        stage = _stage(table.strings.text(what)) if what >= 0 else ""
        sums[who, stage] = sums.get((who, stage), 0) + time_ns
    return [
        Part(
            *(split_frame(table.strings.text(who)) if who >= 0 else ("", 0, "DataLoader")), stage, time_ns / total,
            call_named(*split_frame(table.strings.text(calls[who]))[::2]) if who in calls else "",
        )
        for (who, stage), time_ns in sums.items()
    ]  # fmt: skip


def _undisturbed(name: IntArray, own_ns: IntArray) -> IntArray:
    """Return the times of calls with the median of their name for single ones that stood still."""
    _, back, count = np.unique(name, return_inverse=True, return_counts=True)
    usual_ns = group_medians(back, own_ns, len(count))
    still = own_ns >= np.maximum(STALLED_CALL_NS, STALLED_RATIO_ONE_STEP * usual_ns[back])
    seldom = np.bincount(back, still, len(count)) <= SELDOM_SHARE * count
    return np.where(still & seldom[back], usual_ns[back], own_ns)


def _calls(owner: IntArray, inner: IntArray, time_ns: IntArray) -> dict[int, int]:
    """Return for each user's frame what takes most of its time and is not itself, by the names of both."""
    pairs, back = np.unique(np.column_stack([owner, inner]), axis=0, return_inverse=True)
    times = np.bincount(back.reshape(-1), time_ns)
    whole = {int(who): int(times[pairs[:, 0] == who].sum()) for who in np.unique(owner)}
    rows = zip(pairs.tolist(), times.tolist(), strict=True)
    return {who: what for (who, what), one_ns in rows if who not in (what, -1) and one_ns > MOST_OF * whole[who]}


def _decoded(rank: Rank, *, alone: bool) -> tuple[str, ...]:
    """Return what functions decode that run where the loading is done: in this process, or in workers."""
    names = {(one.file, one.function) for one in rank.recording.stacks if one.where == "worker"}
    if alone:
        host, table = rank.deep.host, rank.deep.events
        inside = table.distinct_names(host.row[under(rank.deep, next_calls(rank.deep))])[0].tolist()
        names |= {(file, function) for file, _, function in map(split_frame, map(table.strings.text, inside))}
        functions = rank.recording.functions
        names |= set(zip(functions.file, functions.name, strict=True)) if functions is not None else set()
    return tuple(sorted({decoded_as(*name) for name in names} - {""}))


def _is_high_level(name: str) -> bool:
    """Return whether a frame is of a library that prepares data (and not of what such a library calls)."""
    file, _, _ = split_frame(name)
    return bool(file) and file.partition("/")[0].partition(".py")[0] not in _LOW_LEVEL and not file.startswith("<")


def _stage(name: str) -> str:
    """Return the stage of a frame, a built-in or an operator by its name in a trace."""
    file, _, function = split_frame(name)
    return stage_of(file, function)


def _has_stage(name: str) -> bool:
    return bool(_stage(name))


def _from_samples(samples: Iterable[StackSample]) -> list[Part]:
    """Return the workers' time by the user's frames, from samples of their stacks."""
    mine = [sample for sample in samples if sample.where == "worker" and is_users(sample.file)]
    total = sum(sample.count for sample in mine)
    if total < _LEAST_SAMPLES:
        return []
    whole = Counter({(one.file, one.function): 0 for one in mine})
    for one in mine:
        whole[one.file, one.function] += one.count
    return [
        Part(
            one.file, one.line, one.function, stage_of(one.file, one.function), one.count / total,
            ONE_LINE if one.count >= AGREED_SHARE * whole[one.file, one.function] else "",
        )
        for one in mine
    ]  # fmt: skip
