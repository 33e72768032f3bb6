"""ModuleMemory: what each module holds, and what checkpointing it would free at the peak."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from uncork.calltree import BACKWARD, FORWARD, CallTree
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.trace_memory import allocated_bytes, allocator_rows, main_rows, next_of
from uncork.nesting import HostSlices
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]

MOST_ROWS = 200
MOST_COUNTED = 2_000
"""`uncork.capture.holdings.MOST_MODULES`."""
MOST_TRIED = 64
"""Modules whose checkpointing is worked out, those that hold most first."""
MOST_TOLD = 8
LEAST_SAVED_BYTES = 1 << 20
"""Smaller savings are not worth a line."""
_NEVER = np.iinfo(np.int64).max
_NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


@dataclass(frozen=True)
class ModuleSizes:
    """What a module and those inside it hold; None where nothing tells.

    Args:
        module: Its path.
        activation_bytes: Made in its forward and still held when the backward pass begins, mean per step.
        parameter_bytes: Parameters.
        gradient_bytes: Their gradients, right after an update.
        optimizer_state_bytes: What the optimisers keep for them.
    """

    module: str
    activation_bytes: int | None = None
    parameter_bytes: int | None = None
    gradient_bytes: int | None = None
    optimizer_state_bytes: int | None = None


@dataclass(frozen=True)
class Checkpoint:
    """What it would mean to compute a module's inside again in the backward pass instead of keeping it.

    Args:
        module: Path of the module, or of all alike with ``*`` for their number.
        modules: How many these are.
        freed_bytes: Not held between its forward and its backward any more; what it returns stays.
        peak_saved_bytes: By how much the peak would be lower: for the backward all is there again, one after another.
        forward_ns: Time of its forward per step, which is spent once more.
    """

    module: str
    modules: int
    freed_bytes: int
    peak_saved_bytes: int
    forward_ns: int


@dataclass(frozen=True)
class ModuleMemory(Measurement):
    """Memory by module, from allocations inside the modules' regions and from what the recorder counted.

    Args:
        modules: The modules that hold most.
        checkpoints: Those whose checkpointing would free memory, most first.
    """

    modules: tuple[ModuleSizes, ...]
    checkpoints: tuple[Checkpoint, ...]

    @classmethod
    def of(cls, rank: Rank) -> "ModuleMemory":
        """Return the memory by module; needs module regions with allocations, or the recorder's count."""
        run = rank.recording.run
        counted = dict(run.modules) if run else {}
        held: dict[str, int] = {}
        checkpoints: tuple[Checkpoint, ...] = ()
        if rank.recording.events is not None or rank.recording.deep is not None:
            blocks = Blocks.of(rank.deep, rank.deep_calltree)
            if blocks is not None:
                held, checkpoints = blocks.held_bytes(), blocks.checkpoints(_forward_ns(rank))
        if not counted and not held:
            raise MissingEvidence("modules" if rank.recording.deep or rank.recording.events else "memory")
        # The recorder leaves out modules without parameters, and beyond two thousand the smallest ones.
        none = (0, 0, 0) if 0 < len(counted) < MOST_COUNTED else (None, None, None)
        rows = [
            ModuleSizes(module, _held_by(module, held), *counted.get(module, none)) for module in {**held, **counted}
        ]
        rows.sort(key=lambda row: (-_total(row), len(row.module), row.module))
        return cls(tuple(rows[:MOST_ROWS]), checkpoints)

    def content(self) -> Mapping[str, Any]:
        """Return what the report's section on memory says about modules."""
        return {
            "modules": [vars(row) for row in self.modules],
            "checkpointing": [vars(row) for row in self.checkpoints],
        }


def _held_by(module: str, held: Mapping[str, int]) -> int | None:
    """Return a module's activations; a container that is never called itself has those of what it contains."""
    if not held or module in held:
        return held.get(module)
    inside = [name for name in held if name.startswith(f"{module}.")]
    return sum(held[name] for name in inside if name.rpartition(".")[0] not in inside)


def _total(row: ModuleSizes) -> int:
    sizes = (row.activation_bytes, row.parameter_bytes, row.gradient_bytes, row.optimizer_state_bytes)
    return sum(size or 0 for size in sizes)


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks made in the forward passes of modules.

    Args:
        timeline: The recording that knows allocations.
        calls: Slices of the modules' calls in forward passes.
        path: Index in `paths` of each of them, int64 (calls,).
        paths: The modules.
        born_ns: When each block was made, int64 (blocks,).
        ended_ns: When it was given back, int64 (blocks,).
        size_bytes: Its size, int64 (blocks,).
        kept: Whether it was still held when the next backward pass began, bool (blocks,).
        block: With `call`, every pair of a block and a call around it, int64 (pairs,).
        call: Place in `calls`, int64 (pairs,), rising.
        when_ns: Moments of all allocation events of the device, int64 (events,).
        total_bytes: What is allocated after each, int64 (events,).
        backward_ns: For each call, when the first backward work of its operators begins; -1 where none does.
    """

    timeline: Timeline
    calls: IntArray
    path: IntArray
    paths: tuple[str, ...]
    born_ns: IntArray
    ended_ns: IntArray
    size_bytes: IntArray
    kept: npt.NDArray[np.bool_]
    block: IntArray
    call: IntArray
    when_ns: IntArray
    total_bytes: IntArray
    backward_ns: IntArray

    @classmethod
    def of(cls, timeline: Timeline, tree: CallTree) -> "Blocks | None":
        """Return the blocks of a recording, None without allocations, modules or a backward pass."""
        table, host = timeline.events, timeline.host
        calls = _calls(tree)
        nodes = np.flatnonzero(tree.phase == BACKWARD)
        if not len(calls) or not len(nodes) or not len(allocator_rows(table)):
            return None
        rows = main_rows(timeline)[0]
        when, change = table.ts_ns[rows], table.ints("Bytes", missing=0)[rows]
        born = np.flatnonzero(change > 0)
        dies = next_of(table.ints("Addr")[rows])[born]
        around = host.innermost(table.track[rows[born]], when[born])
        forward = (around >= 0) & (tree.phase[np.maximum(around, 0)] == FORWARD)
        born, dies, around = born[forward], dies[forward], around[forward]
        ended_ns = np.append(when, _NEVER)[dies]
        begins = np.sort(host.start_ns[nodes])
        following = np.append(begins, _NEVER)[np.searchsorted(begins, when[born], side="right")]
        block, call = _pairs(host, calls, around)
        used, path = np.unique(tree.module[calls], return_inverse=True)
        return cls(
            timeline=timeline,
            calls=calls,
            path=path.reshape(-1),
            paths=tuple(tree.modules[index] if index >= 0 else "" for index in used.tolist()),
            born_ns=when[born],
            ended_ns=ended_ns,
            size_bytes=change[born],
            kept=(ended_ns > following) & (following < _NEVER),
            block=block,
            call=call,
            when_ns=when,
            total_bytes=allocated_bytes(timeline, rows)[0],
            backward_ns=_first_backward(tree, calls),
        )

    def held_bytes(self) -> dict[str, int]:
        """Return the bytes that each module's forward leaves behind, those inside it included, mean per step."""
        sizes = np.where(self.kept, self.size_bytes, 0)[self.block]
        sums = np.bincount(self.path[self.call], sizes, minlength=len(self.paths)).astype(np.int64)
        steps = len(self.timeline.steps)
        return {name: int(size) // steps for name, size in zip(self.paths, sums, strict=True) if name}

    def checkpoints(self, forward_ns: Mapping[str, int]) -> tuple[Checkpoint, ...]:
        """Return what checkpointing all modules alike, or the best single one of them, would free; most first."""
        held = self.held_bytes()
        alike: dict[str, list[str]] = defaultdict(list)
        for name in sorted(held, key=lambda name: -held[name])[:MOST_TRIED]:
            alike[_NUMBER.sub("*", name)].append(name)
        found = []
        for general, members in alike.items():
            tried = [self._checkpoint(name, [name], forward_ns) for name in members]
            found.append(max(tried, key=lambda one: (one.peak_saved_bytes, -one.forward_ns)))
            if len(members) > 1:
                found.append(self._checkpoint(general, members, forward_ns))
        found = [one for one in found if one.peak_saved_bytes >= LEAST_SAVED_BYTES]
        return tuple(sorted(found, key=lambda one: (-one.peak_saved_bytes, one.forward_ns, one.module))[:MOST_TOLD])

    def _checkpoint(self, name: str, members: Sequence[str], forward_ns: Mapping[str, int]) -> Checkpoint:
        """Return what it means if these modules keep no inside: the peak is counted anew."""
        wanted = np.isin(self.path, [self.paths.index(member) for member in members]) & (self.backward_ns >= 0)
        change = np.zeros(len(self.when_ns) + 1, np.int64)
        freed = 0
        for call in np.flatnonzero(wanted).tolist():
            end_ns = self.timeline.host.end_ns[self.calls[call]]
            inside = self._inside_bytes(call, int(end_ns))
            first = int(np.searchsorted(self.when_ns, end_ns, side="left"))
            last = int(np.searchsorted(self.when_ns, self.backward_ns[call], side="left"))
            change[first] -= inside
            change[max(last, first)] += inside
            freed += inside
        saved = int(self.total_bytes.max() - (self.total_bytes + np.cumsum(change)[:-1]).max())
        cost = sum(forward_ns.get(member, 0) for member in members)
        return Checkpoint(name, len(members), freed // len(self.timeline.steps), max(saved, 0), cost)

    def _inside_bytes(self, call: int, end_ns: int) -> int:
        """Return what a call keeps besides what it returns: the block made last of those that outlive the call."""
        first, last = np.searchsorted(self.call, [call, call + 1])
        blocks = self.block[first:last]
        kept = int(self.size_bytes[blocks[self.kept[blocks]]].sum())
        outlive = blocks[self.ended_ns[blocks] > end_ns]
        if not len(outlive):
            return kept
        returned = outlive[self.born_ns[outlive].argmax()]
        return kept - int(self.size_bytes[returned] if self.kept[returned] else 0)


def _calls(tree: CallTree) -> IntArray:
    """Return the modules' calls in the forward passes of a recording's steps."""
    inside = tree.timeline.steps.at(tree.host.start_ns) >= 0
    return np.flatnonzero(tree.is_module & (tree.phase == FORWARD) & inside)


def _pairs(host: HostSlices, calls: IntArray, slices: IntArray) -> tuple[IntArray, IntArray]:
    """Return every pair of a block (made in a slice) and a call around it, in the order of the calls."""
    place = np.full(len(host), -1, np.int64)
    place[calls] = np.arange(len(calls))
    is_call = place >= 0
    at = host.ancestor_where(is_call, slices)
    block, call = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    while (found := np.flatnonzero(at >= 0)).size:
        block.append(found)
        call.append(place[at[found]])
        at = host.ancestor_where(is_call, np.where(at >= 0, host.parent[np.maximum(at, 0)], -1))
    blocks, around = np.concatenate(block), np.concatenate(call)
    order = np.argsort(around, kind="stable")
    return blocks[order], around[order]


def _first_backward(tree: CallTree, calls: IntArray) -> IntArray:
    """Return when the first backward node begins whose forward ran in each call; -1 where none did."""
    host = tree.host
    nodes = np.flatnonzero(tree.forward_of >= 0)
    forward = host.start_ns[tree.forward_of[nodes]]
    order = np.argsort(forward, kind="stable")
    nodes, forward = nodes[order], forward[order]
    found = np.full(len(calls), -1, np.int64)
    first = np.searchsorted(forward, host.start_ns[calls], side="left")
    last = np.searchsorted(forward, host.end_ns[calls], side="left")
    for place in np.flatnonzero(last > first).tolist():
        found[place] = int(host.start_ns[nodes[first[place] : last[place]]].min())
    return found


def _forward_ns(rank: Rank) -> dict[str, int]:
    """Return the time of each module's forward per step: on the device where there is one, else of its calls."""
    tree, timeline = rank.calltree, rank.timeline
    calls = _calls(tree)
    spent = tree.with_children(tree.device_ns) if len(timeline.device) else timeline.host.dur_ns
    sums = np.bincount(np.maximum(tree.module[calls], 0), spent[calls], minlength=len(tree.modules)).astype(np.int64)
    return {name: int(sums[place]) // len(timeline.steps) for place, name in enumerate(tree.modules)}
