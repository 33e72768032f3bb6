"""What is drawn of memory: sizes over time by category, the segments' blocks, rows of owners; of bounded size."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from uncork.measure.allocations import Allocations
from uncork.measure.memory_what_if import Saving
from uncork.measure.owners import Owner
from uncork.quantiles import median
from uncork.snapshot import CATEGORIES, STATES, MemorySnapshot, MemoryTimeline

IntArray = npt.NDArray[np.int64]

LEAST_STEPS = 4
"""Fewer steps show no growth: a trend needs two differences after the first."""
MOST_POINTS = 1_000
"""Of a curve: more than a screen has columns for."""
MOST_SEGMENTS = 256
MOST_BLOCKS = 2_000
"""Of the map of segments, the largest first; the rest is counted."""


def growth_bytes(step_bytes: Sequence[int] | IntArray) -> int:
    """Return the median growth from step to step after the first, 0 unless each of a few adds something.

    The first step's growth is set-up: optimiser state, workspaces.
    """
    growth = np.diff(np.array(step_bytes, np.int64)[1:])
    return int(median(growth)) if len(step_bytes) >= LEAST_STEPS and (growth > 0).all() else 0


def owner_rows(owners: Sequence[Owner], whole_bytes: int) -> list[dict[str, Any]]:
    """Return owners as plain rows, with their share of a whole."""
    return [
        {
            "category": one.category,
            "bytes": one.size_bytes,
            "share": one.size_bytes / whole_bytes,
            "count": one.count,
            "file": one.location.file,
            "line": one.location.line,
            "function": one.location.function,
            "op": one.location.op,
        }
        for one in owners
    ]


def saving_row(saving: Saving, enough: bool | None = None) -> dict[str, Any]:
    """Return a saving as a plain row.

    Args:
        saving: What one change saves, and where.
        enough: After a failure, whether it alone would have let the request through.
    """
    place = saving.location
    return {
        "change": saving.change,
        "saved_low_bytes": saving.low_bytes,
        "saved_high_bytes": saving.high_bytes,
        "enough": enough,
        "file": place and place.file,
        "line": place and place.line,
        "function": place and place.function,
        "count": saving.calls or None,
        "batch_ratio": saving.batch_ratio,
    }


def curve(blocks: Allocations, category: IntArray, time_ns: IntArray) -> dict[str, Any]:
    """Return allocated, reserved and each category over the actions, at up to `MOST_POINTS` moments.

    The peak is among them. ``time_ns`` counts from the first action; it is None where the snapshot has no times.
    """
    places = chosen(blocks.allocated_bytes)
    columns = {}
    for code, word in enumerate(CATEGORIES):
        if (category == code).any():
            columns[word] = blocks.in_use_bytes(np.where(category == code, blocks.size_bytes, 0))[places].tolist()
    timed = len(time_ns) > 0 and int(time_ns.min()) >= 0
    since = np.concatenate([[0], time_ns - time_ns[0]])[places].tolist() if timed else None
    return {
        "action": places.tolist(),
        "time_ns": since,
        "allocated_bytes": blocks.allocated_bytes[places].tolist(),
        "reserved_bytes": blocks.reserved_bytes[places].tolist(),
        "categories": columns,
    }


def timeline_curve(timeline: MemoryTimeline) -> dict[str, Any]:
    """Return an exported timeline's sizes at up to `MOST_POINTS` moments, the peak among them."""
    total = timeline.size_bytes.sum(axis=1)
    places = chosen(total)
    sizes = timeline.size_bytes[places]
    return {
        "action": places.tolist(),
        "time_ns": (timeline.time_ns[places] - timeline.time_ns[0]).tolist(),
        "allocated_bytes": total[places].tolist(),
        "reserved_bytes": None,
        "categories": {word: sizes[:, code].tolist() for code, word in enumerate(CATEGORIES) if sizes[:, code].any()},
    }


def chosen(values: IntArray) -> IntArray:
    """Return up to `MOST_POINTS` places in rising order: the largest value of each stretch, the first and the last."""
    count = len(values)
    if count <= MOST_POINTS:
        return np.arange(count)
    starts = np.linspace(0, count, MOST_POINTS - 1, dtype=np.int64)
    largest = [int(first + values[first:last].argmax()) for first, last in pairwise(starts)]
    return np.array(sorted({0, *largest, count - 1}), np.int64)


def segments_map(snapshot: MemorySnapshot, device: int) -> dict[str, Any]:
    """Return the segments of a device with their blocks: (offset, size, state) each; the largest segments first."""
    segments, blocks = snapshot.segments, snapshot.blocks
    mine = np.flatnonzero(segments.device == device)
    mine = mine[np.argsort(-segments.size_bytes[mine], kind="stable")]
    order = np.lexsort((blocks.address, blocks.segment))
    first = np.searchsorted(blocks.segment[order], np.arange(len(segments.device)))
    last = np.searchsorted(blocks.segment[order], np.arange(len(segments.device)), side="right")
    shown: list[dict[str, Any]] = []
    drawn = 0
    for segment in mine[:MOST_SEGMENTS].tolist():
        rows = order[first[segment] : last[segment]]
        if drawn + len(rows) > MOST_BLOCKS and shown:
            break
        rows = rows[: MOST_BLOCKS - drawn]
        drawn += len(rows)
        shown.append(
            {
                "bytes": int(segments.size_bytes[segment]),
                "small": bool(segments.small[segment]),
                "expandable": bool(segments.expandable[segment]),
                "stream": int(segments.stream[segment]),
                "offset_bytes": (blocks.address[rows] - segments.address[segment]).tolist(),
                "size_bytes": blocks.size_bytes[rows].tolist(),
                "state": [STATES[code] for code in blocks.state[rows].tolist()],
            }
        )
    rest = mine[len(shown) :]
    return {
        "shown": shown,
        "more": len(rest),
        "more_bytes": int(segments.size_bytes[rest].sum()),
        **_filling(snapshot, mine),
    }


def _filling(snapshot: MemorySnapshot, mine: IntArray) -> dict[str, int]:
    """Return how many segments are free, used in part or full, and what is free in the first two."""
    segments, blocks = snapshot.segments, snapshot.blocks
    used = np.bincount(
        blocks.segment, blocks.size_bytes * (blocks.state != STATES.index("inactive")), minlength=len(segments.device)
    )[mine].astype(np.int64)
    size = segments.size_bytes[mine]
    free, part = used == 0, (used > 0) & (used < size)
    return {
        "free": int(free.sum()),
        "free_bytes": int(size[free].sum()),
        "part": int(part.sum()),
        "part_free_bytes": int((size - used)[part].sum()),
        "full": int((~free & ~part).sum()),
    }
