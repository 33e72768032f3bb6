"""By frames and by sizes: what stretches of a recording without either were, as the recorder's deep window tells."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from uncork.events import Kind
from uncork.intervals import intersect, intervals, subtract, union
from uncork.ledger import Ledger
from uncork.measure import MissingEvidence, Rank
from uncork.measure.host_bandwidth import HostBandwidth
from uncork.measure.step_ledger import FRAME_CAUSES, StepLedger

MOSTLY = 0.5
"""Stretches are named only where one cause takes more than half of all that was unexplained …"""
WORTH_NAMING = 0.1
"""… and this share of the steps: less is no pattern that anybody sees (`sentences.PATTERN_SHARE`)."""
Note = Mapping[str, object]


def by_frames(rank: Rank) -> tuple[Ledger, list[Note]]:
    """Return a rank's ledger with its longest unexplained stretches named as its step ledger names them; and a note.

    The step ledger knows how much of a step a cause takes, from frames of other steps, but not where: the longest
    stretches, up to that time, are the likeliest.
    """
    ledger = _by_sizes(rank)
    spans = ledger.intervals.get("unexplained")
    if rank.deep is rank.timeline or spans is None or not len(spans):
        return ledger, []
    told, held = rank.made(StepLedger), ledger.ns.sum(axis=1)
    # A step ledger may have a row more, so causes go by name.
    total = dict(zip(told.causes, told.ns.sum(axis=1).tolist(), strict=True))
    moved = {
        cause: total[cause] - int(ns) for cause, ns in zip(ledger.causes, held, strict=True) if cause in FRAME_CAUSES
    }
    cause = max(moved, key=moved.__getitem__, default="")
    dur = spans[:, 1] - spans[:, 0]
    if not cause or moved[cause] <= max(MOSTLY * int(dur.sum()), WORTH_NAMING * int(ledger.step_ns.sum())):
        return ledger, []
    order = np.argsort(-dur, kind="stable")
    # A stretch is named as long as more than half of it fits into the time that the cause has.
    named = np.zeros(len(spans), bool)
    named[order] = np.cumsum(dur[order]) - dur[order] // 2 < moved[cause]
    known = ledger.intervals.get(cause)
    parts = [spans[named]] if known is None else [known, spans[named]]
    found = {**ledger.intervals, cause: union(*parts), "unexplained": spans[~named]}
    return replace(ledger, intervals=found), [{"id": f"page.timeline.told.{cause}"}]


def _by_sizes(rank: Rank) -> Ledger:
    """Return a rank's ledger with operators that mostly move large tensors as memory-bound, as its step ledger does."""
    ledger = rank.ledger
    try:
        names = rank.made(HostBandwidth).names
    except MissingEvidence:
        return ledger
    host, large = rank.timeline.host, rank.timeline.named(names, Kind.CPU_OP)
    computing = ledger.intervals.get("compute")
    if computing is None or not large.any():
        return ledger
    moving = intersect(computing, intervals(host.start_ns[large], host.end_ns[large]))
    found = {**ledger.intervals, "compute": subtract(computing, moving), "bandwidth": moving}
    return replace(ledger, intervals=found)
