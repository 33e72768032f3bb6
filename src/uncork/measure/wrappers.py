"""Wrappers: what DistributedDataParallel and DataParallel say about themselves in a trace."""

import re

import numpy as np
import numpy.typing as npt

from uncork.calltree import BACKWARD_NODE
from uncork.events import DEVICE_KINDS, Kind
from uncork.intervals import intervals, moments, subtract, total_ns
from uncork.ledger import counts_for
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]

DDP_FORWARD = "DistributedDataParallel.forward"
DATA_PARALLEL_FORWARD = "DataParallel.forward"
"""Regions that the wrappers' forward methods name (torch/nn/parallel)."""
_SEARCH = re.compile(r"ddp\.reducer::search_unused_parameters")
_OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
_SYNCS = re.compile(r"all_?reduce|reduce_?scatter")


def _syncs(name: str) -> bool:
    return bool(_SYNCS.search(name.casefold()))


@dataclass(frozen=True)
class Wrappers(Measurement):
    """How the model is wrapped, and how often gradients are exchanged; counts over the whole window.

    Args:
        steps: Steps in the window.
        ddp_forwards: Forward passes through DistributedDataParallel.
        data_parallel_forwards: Forward passes through DataParallel.
        optimizer_steps: Steps of optimisers.
        synced_forwards: DDP forward passes that are followed by a reduction before the next forward pass.
        search_ns_per_step: Time per step of DDP's search for unused parameters.
        exposed_search_ns_per_step: The part of it in which the device (if there is one) does nothing.
        devices: Devices of this process that work.
        backward: Whether there is a backward pass.
    """

    steps: int
    ddp_forwards: int
    data_parallel_forwards: int
    optimizer_steps: int
    synced_forwards: int
    search_ns_per_step: int
    exposed_search_ns_per_step: int
    devices: int
    backward: bool

    @classmethod
    def of(cls, rank: Rank) -> "Wrappers":
        """Return what a rank's trace says; needs host regions."""
        timeline = rank.timeline
        if not len(timeline.host):
            raise MissingEvidence("events")
        forwards = _region(timeline, DDP_FORWARD)
        search = _region(timeline, _SEARCH)
        searching = intervals(search[:, 0], search[:, 1])
        steps = max(len(timeline.steps), 1)
        return cls(
            steps=steps,
            ddp_forwards=len(forwards),
            data_parallel_forwards=len(_region(timeline, DATA_PARALLEL_FORWARD)),
            optimizer_steps=len(_region(timeline, _OPTIMIZER_STEP)),
            synced_forwards=_synced(timeline, forwards[:, 0]),
            search_ns_per_step=total_ns(searching) // steps,
            exposed_search_ns_per_step=total_ns(subtract(searching, timeline.device_busy)) // steps,
            devices=len(moments(timeline.events.ints("device")[timeline.device.row])),
            backward=bool(timeline.named(BACKWARD_NODE, Kind.CPU_OP).any()),
        )


def _region(timeline: Timeline, name: str | re.Pattern[str]) -> IntArray:
    """Return (start, end) of the outermost regions of a name in order of time, int64 (regions, 2)."""
    host = timeline.host
    fits = timeline.named(name, Kind.USER_ANNOTATION, Kind.CPU_OP)
    places = np.flatnonzero(fits)
    places = places[host.ancestor_where(fits, host.parent[places]) < 0]
    rows = np.column_stack([host.start_ns[places], host.end_ns[places]])
    return rows[np.argsort(rows[:, 0], kind="stable")]


def _synced(timeline: Timeline, forward_ns: IntArray) -> int:
    """Return how many stretches from one forward pass to the next launch a reduction of gradients."""
    table, device = timeline.events, timeline.device
    named = table.name_is(_syncs, *DEVICE_KINDS, Kind.CPU_OP, Kind.USER_ANNOTATION)
    if len(device):
        reduces = named[device.row] & counts_for(timeline, "comm")
        launch = device.launch[reduces]
        when = np.where(launch >= 0, timeline.host.start_ns[launch], device.start_ns[reduces])
    else:
        when = table.ts_ns[named & table.of_kind(Kind.USER_ANNOTATION, Kind.CPU_OP)]
    stretch = np.searchsorted(forward_ns, when, side="right") - 1
    return len(moments(stretch[stretch >= 0]))
