"""Preparation: making the step's input on the main thread, outside torch's DataLoader."""

import numpy as np

from uncork.findings import Location
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.loader import LoaderWait, next_calls
from uncork.measure.loader_code import LoaderCode
from uncork.measure.python_gaps import GAP_CAUSES, PythonGaps
from uncork.records import dataclass


@dataclass(frozen=True)
class Preparation(Measurement):
    """Input made between the steps' operators.

    Args:
        ns: Time per step.
        location: Where; the user's frame, else the region's name.
    """

    ns: int
    location: Location

    @classmethod
    def of(cls, rank: Rank) -> "Preparation":
        """Return it for a rank: a region that the program names so, else Python frames that prepare input."""
        ledger = rank.ledger

        def mean_ns(*causes: str) -> int:
            rows = [place for place, cause in enumerate(ledger.causes) if cause in causes]
            return int(ledger.ns[rows].sum(axis=0).mean()) if rows else 0

        if rank.made(LoaderWait).iterator == "named":
            return cls(mean_ns("data_loading", "py_prep"), _region(rank))
        gaps = rank.made(PythonGaps)
        top = gaps.top("prepare")
        share_ns = int(gaps.part_ns("prepare", mean_ns(*GAP_CAUSES), mean_ns(*ledger.causes)))
        return cls(max(share_ns, mean_ns("py_prep")), top.location if top else Location(op="preprocessing"))


def _region(rank: Rank) -> Location:
    """Return the function that costs most in a named region, else the region's name."""
    try:
        top = rank.made(LoaderCode).top()
    except MissingEvidence:
        top = None
    if top:
        return top.location
    timeline = rank.timeline
    places = next_calls(timeline)
    longest = places[int(np.argmax(timeline.host.dur_ns[places]))]
    return Location(op=timeline.events.names([timeline.host.row[longest]])[0])
