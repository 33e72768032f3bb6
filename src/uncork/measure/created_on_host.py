"""CreatedOnHost: tensors that are filled on the CPU and then copied, where the device could have filled them itself."""

import re

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.findings import Location
from uncork.intervals import covered_ns
from uncork.ledger import counts_for
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.whereabouts import locate
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_CREATES = re.compile(
    r"^aten::(rand|randn|randint|rand_like|randn_like|normal_?|uniform_|bernoulli_?|zeros|ones|full|arange"
    r"|linspace|eye|empty|fill_|zero_|tril|triu|one_hot|scalar_tensor|zeros_like|ones_like|full_like)$"
)
_TO_DEVICE = re.compile(r"HtoD|HostToDevice")
_FILLS = re.compile(r"^aten::(empty)$")
FASTEST_BYTES_PER_NS = 100
"""No CPU fills a tensor at more than 100 GB/s from one thread's cache; a shorter creation made something else."""
LEAST_NS = 20_000
NEIGHBOURS = 3
"""How many operators before the copy may be the creation: a reshape or a cast may stand between."""


@dataclass(frozen=True)
class CreatedOnHost(Measurement):
    """Tensors created on the CPU right before their copy to the device, in the steps of one rank.

    Args:
        per_step: Such copies.
        idle_ns_per_step: Time of creating them in which the device does nothing.
        copy_ns_per_step: Time of their copies that the ledger gives to copies.
        location: Where most of the time goes.
    """

    per_step: float
    idle_ns_per_step: int
    copy_ns_per_step: int
    location: Location

    @classmethod
    def of(cls, rank: Rank) -> "CreatedOnHost":
        """Return what a rank creates on the CPU and copies; needs device records and host operators."""
        timeline = rank.timeline
        device, host, steps = timeline.device, timeline.host, timeline.steps
        if not len(device) or not len(host):
            raise MissingEvidence("device")
        names = timeline.events.name_is(_TO_DEVICE)[device.row]
        rows = np.flatnonzero(
            counts_for(timeline, "copy") & names & (timeline.launch_op >= 0)
            & (device.start_ns >= steps.start_ns[0]) & (device.start_ns < steps.end_ns[-1])
        )  # fmt: skip
        creation = _creation(timeline, timeline.launch_op[rows])
        size = timeline.events.ints("bytes", missing=0)[device.row[rows]]
        # Profilers and loaders make small tensors too: what was made must be large enough to be what is copied.
        fits = host.dur_ns[creation] >= np.maximum(size / FASTEST_BYTES_PER_NS, LEAST_NS)
        rows, creation = rows[(creation >= 0) & fits], creation[(creation >= 0) & fits]
        made, first = np.unique(creation, return_index=True)
        busy = covered_ns(timeline.device_busy, host.start_ns[made], host.end_ns[made])
        exposed = covered_ns(rank.ledger.intervals["copy"], device.start_ns[rows], device.end_ns[rows])
        idle = host.dur_ns[made] - busy
        count = max(len(steps), 1)
        return cls(
            per_step=len(made) / count,
            idle_ns_per_step=int(idle.sum()) // count,
            copy_ns_per_step=int(exposed.sum()) // count,
            location=locate(rank, made[[int((idle + exposed[first]).argmax())]])[0] if len(made) else Location(),
        )


def _creation(timeline: Timeline, op: IntArray) -> IntArray:
    """Return for each copying operator the creation just before it on the same thread, -1 where there is none."""
    host = timeline.host
    is_op = host.kind == Kind.CPU_OP
    top = op.copy()
    while True:
        above = host.parent[top]
        climb = (above >= 0) & is_op[np.maximum(above, 0)]
        if not climb.any():
            break
        top[climb] = above[climb]
    before = _previous(host.parent, host.track, is_op)
    launches = np.zeros(len(host), bool)
    launched = timeline.device.launch[timeline.device.launch >= 0]
    launches[launched] = True
    creates = timeline.named(_CREATES, Kind.CPU_OP) & ~_encloses(host.parent, host.depth, launches)
    # An empty tensor is filled by something else: alone it is no creation.
    creates &= ~timeline.named(_FILLS, Kind.CPU_OP)
    found, place = np.full(len(top), -1, np.int64), top
    for _ in range(NEIGHBOURS):
        place = np.where(place >= 0, before[np.maximum(place, 0)], -1)
        hit = (found < 0) & (place >= 0) & creates[np.maximum(place, 0)]
        found[hit] = place[hit]
    return found


def _previous(parent: IntArray, track: IntArray, is_op: BoolArray) -> IntArray:
    """Return the operator before each operator under the same parent on the same thread, -1 for the first."""
    rows = np.flatnonzero(is_op)
    order = rows[np.lexsort((rows, parent[rows], track[rows]))]
    same = (parent[order][1:] == parent[order][:-1]) & (track[order][1:] == track[order][:-1])
    before = np.full(len(parent), -1, np.int64)
    before[order[1:][same]] = order[:-1][same]
    return before


def _encloses(parent: IntArray, depth: IntArray, wanted: BoolArray) -> BoolArray:
    """Return which slices are, or hold at any depth, a wanted one."""
    found = wanted.copy()
    for level in range(int(depth.max()), 0, -1):
        rows = np.flatnonzero((depth == level) & found)
        found[parent[rows]] = True
    return found
