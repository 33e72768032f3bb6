"""BandwidthKernels: kernels that mostly read and write memory, by what they do and who launches them."""

import numpy as np
import numpy.typing as npt

from uncork.findings import Location
from uncork.kernels import CLASSES
from uncork.ledger import counts_for
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.whereabouts import locate
from uncork.records import dataclass

IntArray = npt.NDArray[np.int64]

MOST_CALLS = 256
"""Calls whose place is looked up: more of the same operator say the same."""


@dataclass(frozen=True)
class BandwidthKernels(Measurement):
    """Bandwidth-bound device work in the steps of one rank.

    Args:
        per_step: Number of such kernels, copies within the device and fills.
        by_class: (class of `uncork.kernels.CLASSES`, mean time per step in ns), the longest first.
        location: The operator that launches most of the time, and its place.
    """

    per_step: float
    by_class: tuple[tuple[str, int], ...]
    location: Location

    @classmethod
    def of(cls, rank: Rank) -> "BandwidthKernels":
        """Return the bandwidth-bound work of a rank; needs device records."""
        timeline = rank.timeline
        device, steps = timeline.device, timeline.steps
        if not len(device):
            raise MissingEvidence("device")
        rows = np.flatnonzero((timeline.device_step >= 0) & counts_for(timeline, "bandwidth"))
        dur = device.dur_ns[rows]
        count = max(len(steps), 1)
        by_class = np.bincount(timeline.kernel_class[rows], dur, minlength=len(CLASSES))
        order = np.argsort(-by_class, kind="stable")
        return cls(
            per_step=len(rows) / count,
            by_class=tuple((CLASSES[code], int(by_class[code]) // count) for code in order.tolist() if by_class[code]),
            location=_heaviest(rank, timeline.launch_op[rows], dur),
        )


def _heaviest(rank: Rank, op: IntArray, dur_ns: IntArray) -> Location:
    """Return the place whose operators launch most time.

    It is looked for among the longest calls of the operator that launches most.
    """
    known = op >= 0
    if not known.any():
        return Location()
    used, back = np.unique(op[known], return_inverse=True)
    spent = np.bincount(back, dur_ns[known])
    names, of_name = np.unique(rank.timeline.events.name[rank.timeline.host.row[used]], return_inverse=True)
    mine = np.flatnonzero(of_name == np.bincount(of_name, spent, minlength=len(names)).argmax())
    mine = mine[np.argsort(-spent[mine], kind="stable")][:MOST_CALLS]
    sums: dict[Location, float] = {}
    for place, time in zip(locate(rank, used[mine]), spent[mine].tolist(), strict=True):
        sums[place] = sums.get(place, 0.0) + time
    return max(sums, key=sums.__getitem__)
