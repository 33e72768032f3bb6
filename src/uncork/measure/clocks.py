"""How far the clocks of host and device are apart at least: no work is before its launch, or after a wait for it."""

import re

import numpy as np

from uncork.events import Kind
from uncork.quantiles import median
from uncork.timeline import Timeline

SLACK_NS = 10_000
"""Clocks of host and device are matched to a few microseconds; work that starts this long before its launch shows
that they were not."""
_WAITS_FOR_ALL = re.compile(r"^(cuda|hip|cu|mu)(Device|Ctx)Synchronize")


def apart_ns(timeline: Timeline) -> int:
    """Return how far the device's clock is ahead (behind: below 0) of the host's at least; 0 where nothing shows it."""
    host, device = timeline.host, timeline.device
    linked = np.flatnonzero(device.launch >= 0)
    if not len(linked):
        return 0
    launched, start = host.start_ns[device.launch[linked]], device.start_ns[linked]
    early = float(median(launched - start))
    if early > SLACK_NS:
        return -int(early)
    order = np.argsort(launched, kind="stable")
    ended = np.maximum.accumulate(device.end_ns[linked][order])
    waits = np.flatnonzero(timeline.named(_WAITS_FOR_ALL, Kind.RUNTIME))
    before = np.searchsorted(launched[order], host.start_ns[waits]) - 1
    late = ended[before[before >= 0]] - host.end_ns[waits[before >= 0]]
    return max(int(median(late)), 0) if len(late) else 0
