"""What cannot be: the part of the gate for times that no working profiler writes."""

import numpy as np

from uncork.findings import Quality
from uncork.measure.facts import Facts
from uncork.measure.quality import RecordingQuality

EARLY_DEVICE_SHARE = 0.01
"""Device work before its launch: matched clocks show none."""
APART_SHARE = 0.25
"""Clocks further apart than this part of a step put work beside what the host did at another time (labelled traces:
0.005 at most)."""
CROSSING_SHARE = 0.05
"""More events than this that do not nest: times of operators are guesses (labelled traces: up to 0.02) …"""
IMPOSSIBLE_SHARE = 0.25
"""… and with more than this untrue: one thread does one thing at a time."""
TWICE_SHARE = 0.5
"""Streams that did two things at once for more of their time have wrong durations (public traces: up to 0.004)."""
FLAT_SHARE = 0.02
"""Work takes time: where times are finer than microseconds no operator and no kernel has a length of 0 (182 recordings,
2026) …"""
FLAT_OPS_SHARE = 0.5
FLAT_DEVICE_SHARE = 0.25
"""… and of whole microseconds, short ones do: up to 0.26 of the operators in them, and 0.07 of the kernels."""
MOSTLY_FLAT_SHARE = 0.25
"""With more of them the shares of all causes are wrong."""
FEWEST = 20
"""Of fewer no share is taken: one of them may be an exception."""


def crossing(counts: RecordingQuality, _: Facts) -> Quality | None:
    """Return that events of a thread do not nest."""
    if not counts.clipped:
        return None
    share = counts.clipped / counts.events
    severity = "blocking" if share > IMPOSSIBLE_SHARE else "warning" if share > CROSSING_SHARE else "info"
    return Quality("crossing-events", severity, share, {"crossing": counts.clipped})


def clock(counts: RecordingQuality, _: Facts) -> Quality | None:
    """Return that the device's times are untrue in themselves, or apart from the host's."""
    if counts.twice_share > TWICE_SHARE:
        return Quality("device-times-impossible", "blocking", counts.twice_share, {"twice_share": counts.twice_share})
    if len(counts.step_ns) and abs(counts.apart_ns) > APART_SHARE * np.median(counts.step_ns):
        return Quality("device-clock-apart", "blocking", None, {"apart_ns": abs(counts.apart_ns)})
    early = counts.early_device_share
    return Quality("clock-unreliable", "warning", early) if early > EARLY_DEVICE_SHARE else None


def lengths(counts: RecordingQuality, _: Facts) -> Quality | None:
    """Return that the lengths of operators or of device records are missing."""
    shares = [
        share
        for share, count, limit in (
            (counts.flat_ops_share, counts.cpu_ops, FLAT_OPS_SHARE),
            (counts.flat_device_share, counts.device_records, FLAT_DEVICE_SHARE),
        )
        if count >= FEWEST and share > (limit if counts.whole_us else FLAT_SHARE)
    ]
    if not shares:
        return None
    severity = "blocking" if max(shares) > MOSTLY_FLAT_SHARE else "warning"
    return Quality("no-lengths", severity, max(shares), {"flat_share": max(shares)})


IMPOSSIBILITIES = (lengths, crossing, clock)
"""In the order in which they are asked."""
