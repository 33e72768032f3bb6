"""sound_times: times that cannot be true, set right or left out, and counted."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np

from uncork.events import EventTable, Kind
from uncork.quantiles import median
from uncork.readers.columns import Scanned
from uncork.readers.selection import select

_DEVICE = (Kind.KERNEL, Kind.GPU_MEMCPY, Kind.GPU_MEMSET)
_LAUNCH = re.compile(r"^(?:cuda|hip|cu)(?:Graph)?Launch")
_LAUNCH_TOO_LONG_NS = 1_000_000
"""A launch call takes 2 to 20 µs; half of all taking over 1 ms means the times were written in ns."""
_OP_TOO_LONG_NS = 300_000
"""The shortest of many operators takes a few µs at most; over 300 µs means ns, where the header also says ns."""
_SPILL = 100
"""A kernel over this many times longer than the way to the next start, over at least two starts, has a wrong end."""


def sound_times(table: EventTable, scanned: Scanned, repairs: Counter[str]) -> EventTable:
    """Return the table with its unit right, lost device records left out and spilling kernels clipped."""
    if scanned.huge_times:
        repairs["nanoseconds"] += scanned.huge_times
        table = replace(table, dur_ns=table.dur_ns // 1000)
    elif scanned.whole_numbers and scanned.header.get("displayTimeUnit") == "ns" and _looks_like_ns(table):
        repairs["nanoseconds"] += len(table)
        table = replace(table, ts_ns=table.ts_ns // 1000, dur_ns=table.dur_ns // 1000)
    table = _without_lost_records(table, repairs)
    return _clipped(table, repairs)


def _looks_like_ns(table: EventTable) -> bool:
    """Return whether times read as µs would be implausibly long."""
    launches = table.of_kind(Kind.RUNTIME) & table.name_is(_LAUNCH)
    if launches.any():
        return median(table.dur_ns[launches]) > _LAUNCH_TOO_LONG_NS
    operators = table.dur_ns[table.of_kind(Kind.CPU_OP)]
    return len(operators) > 0 and int(operators.min()) > _OP_TOO_LONG_NS


def _without_lost_records(table: EventTable, repairs: Counter[str]) -> EventTable:
    """Leave out device records at time 0: the device's buffer lost them."""
    lost = table.of_kind(*_DEVICE) & (table.ts_ns == 0) & (table.dur_ns == 0)
    if not lost.any() or not (table.ts_ns > 0).any():
        return table
    repairs["lost_records"] += int(np.count_nonzero(lost))
    return select(table, ~lost)


def _clipped(table: EventTable, repairs: Counter[str]) -> EventTable:
    """Clip kernels that run over the next ones of their stream, which a stream cannot do."""
    rows = np.flatnonzero(table.of_kind(Kind.KERNEL))
    if len(rows) < 3:
        return table
    rows = rows[np.lexsort((table.ts_ns[rows], table.track[rows]))]
    # Not `end_ns`: it is kept, and the base is added to the starts later.
    start, track = table.ts_ns[rows], table.track[rows]
    end = start + table.dur_ns[rows]
    spills = np.zeros(len(rows), bool)
    way = start[1:-1] - start[:-2]
    spills[:-2] = (
        (track[:-2] == track[2:]) & (end[:-2] > start[2:]) & (end[:-2] - start[:-2] > _SPILL * way) & (way > 0)
    )
    if not spills.any():
        return table
    repairs["spilling_kernels"] += int(np.count_nonzero(spills))
    dur_ns = table.dur_ns.copy()
    places = np.flatnonzero(spills)
    dur_ns[rows[places]] = start[places + 1] - start[places]
    return replace(table, dur_ns=dur_ns)
