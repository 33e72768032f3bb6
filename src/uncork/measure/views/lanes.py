"""Lanes: which events stand in which row of the page's timeline; rows never overlap."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from uncork.events import IntArray, Kind, Track
from uncork.intervals import Intervals
from uncork.kernels import CLASSES
from uncork.ledger import Ledger
from uncork.measure.views.names import Names, printable
from uncork.recording import SpanTable
from uncork.records import dataclass
from uncork.timeline import Timeline

MOST_CAUSES = 400_000
"""Stretches in the row of causes: about 3 bytes each."""
_MOST_SUBLANES = 8
# A stream is named after what fills more than half of its busy time.
_MOSTLY = 0.5


@dataclass(frozen=True, eq=False)
class Lane:
    """One track of the timeline.

    Args:
        group: Heading it stands under: ``gpu 0``, ``cpu``, ``data``, or empty for pinned tracks.
        role: ``step cause device host loader``.
        label: Message id and parameters.
        rows: Number of events in each row.
        start_ns: Start, row by row, shape (events,).
        dur_ns: Duration, shape (events,).
        name: Number in `Names`, shape (events,).
        source: Index in the timeline's host or device slices, -1 where it is neither, shape (events,).
        main: Whether it is the main thread.
    """

    group: str
    role: str
    label: Mapping[str, object]
    rows: tuple[int, ...]
    start_ns: IntArray
    dur_ns: IntArray
    name: IntArray
    source: IntArray
    main: bool = False


def step_lane(timeline: Timeline, names: Names) -> Lane | None:
    """Return the lane of step marks, or None where steps are not marked."""
    steps = timeline.steps
    if not steps.marked:
        return None
    number = np.array([names.number(printable(name), "step") for name in steps.names], np.int64)
    return _lane(
        "", "step", {"id": "page.track.steps"}, [np.arange(len(steps))], (steps.start_ns, steps.end_ns, number)
    )


def cause_lane(ledger: Ledger, names: Names) -> Lane | None:
    """Return the lane of what the time went to, by cause of the ledger."""
    parts: list[Intervals] = []
    number: list[IntArray] = []
    for cause, spans in ledger.intervals.items():
        if len(spans):
            parts.append(spans)
            number.append(np.full(len(spans), names.number(f"cause.{cause}", cause), np.int64))
    if not parts:
        return None
    spans, of = np.concatenate(parts), np.concatenate(number)
    if len(spans) > MOST_CAUSES:
        # The shortest are far below a pixel; leaving them out as gaps keeps the page within its size.
        dur = spans[:, 1] - spans[:, 0]
        longest = np.argpartition(dur, -MOST_CAUSES)[-MOST_CAUSES:]
        spans, of = spans[longest], of[longest]
    label = {"id": "page.track.causes" if ledger.on_device else "page.track.causes_cpu"}
    return _lane("", "cause", label, [np.argsort(spans[:, 0], kind="stable")], (spans[:, 0], spans[:, 1], of))


def device_lanes(timeline: Timeline, kept: IntArray, names: Names) -> list[Lane]:
    """Return a lane per device stream; work that overlaps on a stream is spread over several rows."""
    device, table = timeline.device, timeline.events
    number = names.numbers(table, device.row)
    lanes = []
    for track in _in_order(timeline, np.unique(device.track[kept])):
        rows = kept[device.track[kept] == track]
        order = rows[np.argsort(device.start_ns[rows], kind="stable")]
        place = _sublanes(device.start_ns[order], device.end_ns[order])
        split = [order[place == row] for row in range(int(place.max(initial=0)) + 1)]
        label = {"id": _stream_label(timeline, order), "params": {"stream": _number(table.tracks[track].tid)}}
        group = f"gpu {printable(table.tracks[track].pid)}"
        lanes.append(_lane(group, "device", label, split, (device.start_ns, device.end_ns, number), sourced=True))
    return lanes


def host_lanes(timeline: Timeline, kept: IntArray, names: Names) -> list[Lane]:
    """Return a lane per host thread with a row per depth, the main thread first, idle ones left out."""
    host, table = timeline.host, timeline.events
    number = names.numbers(table, host.row)
    tracks = np.unique(host.track[kept]).tolist()
    lanes = []
    for track in sorted(tracks, key=lambda one: (one != timeline.main_track, -int((host.track[kept] == one).sum()))):
        rows = kept[host.track[kept] == track]
        order = rows[np.lexsort((host.start_ns[rows], host.depth[rows]))]
        split = [row for row in np.split(order, np.flatnonzero(np.diff(host.depth[order])) + 1) if len(row)]
        main = track == timeline.main_track
        who = table.tracks[track]
        label = {"id": "page.track.main" if main else "page.track.thread", "params": {"thread": _thread(who)}}
        lane = _lane("cpu", "host", label, split, (host.start_ns, host.end_ns, number), sourced=True)
        lanes.append(replace(lane, main=main))
    return lanes


def loader_lanes(spans: SpanTable | None, start_ns: int, end_ns: int, names: Names) -> list[Lane]:
    """Return a lane per DataLoader worker, from the recorder's own marks."""
    if spans is None:
        return []
    inside = (spans.start_ns + spans.dur_ns >= start_ns) & (spans.start_ns <= end_ns)
    stage = np.array([names.number(f"page.stage.{printable(one)}", "data") for one in spans.stages], np.int64)
    # A span that began before the window is cut at its beginning: the view begins there.
    begin = np.maximum(spans.start_ns, start_ns)
    lanes = []
    for worker in np.unique(spans.worker[inside]).tolist():
        rows = np.flatnonzero(inside & (spans.worker == worker))
        end = spans.start_ns + spans.dur_ns
        order = rows[np.lexsort((-end[rows], spans.start_ns[rows]))]
        place = _sublanes(spans.start_ns[order], end[order])
        split = [order[place == row] for row in range(int(place.max(initial=0)) + 1)]
        label = (
            {"id": "page.track.loader_main"}
            if worker < 0
            else {"id": "page.track.worker", "params": {"worker": worker}}
        )
        lanes.append(_lane("data", "loader", label, split, (begin, end, stage[spans.stage])))
    return lanes


def _lane(
    group: str,
    role: str,
    label: Mapping[str, object],
    rows: list[IntArray],
    columns: tuple[IntArray, IntArray, IntArray],
    *,
    sourced: bool = False,
) -> Lane:
    """Return a lane of rows of indices into columns (start, end, name).

    What still overlaps within a row is cut at its predecessor's end.
    """
    start_ns, end_ns, name = columns
    starts, durations = [], []
    for row in rows:
        reach = np.maximum.accumulate(end_ns[row])
        start = np.maximum(start_ns[row], np.concatenate([reach[:1] * 0 + start_ns[row][:1], reach[:-1]]))
        starts.append(start)
        durations.append(np.maximum(end_ns[row] - start, 0))
    order = np.concatenate(rows) if rows else np.empty(0, np.int64)
    return Lane(
        group=group,
        role=role,
        label=label,
        rows=tuple(len(row) for row in rows),
        start_ns=np.concatenate(starts) if starts else np.empty(0, np.int64),
        dur_ns=np.concatenate(durations) if durations else np.empty(0, np.int64),
        name=name[order],
        source=order if sourced else np.full(len(order), -1, np.int64),
    )


def _sublanes(start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Return the first row that is free for each of some events, sorted by start."""
    place = np.zeros(len(start_ns), np.int64)
    if not len(start_ns) or not (start_ns[1:] < np.maximum.accumulate(end_ns)[:-1]).any():
        return place
    free_from = [np.iinfo(np.int64).min] * _MOST_SUBLANES
    for index, (start, end) in enumerate(zip(start_ns.tolist(), end_ns.tolist(), strict=True)):
        row = next((one for one in range(_MOST_SUBLANES) if free_from[one] <= start), None)
        if row is None:
            row = min(range(_MOST_SUBLANES), key=free_from.__getitem__)
        free_from[row] = max(end, free_from[row])
        place[index] = row
    return place


def _stream_label(timeline: Timeline, slices: IntArray) -> str:
    device = timeline.device
    dur = device.dur_ns[slices]
    whole = int(dur.sum()) or 1
    copies = np.isin(device.kind[slices], (Kind.GPU_MEMCPY, Kind.GPU_MEMSET))
    comm = timeline.kernel_class[slices] == CLASSES.index("comm")
    if int(dur[copies].sum()) > _MOSTLY * whole:
        return "page.track.stream_copy"
    return "page.track.stream_comm" if int(dur[comm & ~copies].sum()) > _MOSTLY * whole else "page.track.stream"


def _thread(track: Track) -> str:
    """Return what tells a thread from the others: its name where it says more than its number, else the number."""
    named = re.sub(rf"^thread {re.escape(track.tid)}\b", "", track.name).strip(" ()")
    return printable(f"{_number(track.tid)} {named}".strip())


def _number(text: str) -> str:
    """Return a stream's or thread's number without the word before it, which the label has already."""
    return printable(re.sub(r"^(stream|thread)\s+", "", text, flags=re.IGNORECASE))


def _in_order(timeline: Timeline, tracks: IntArray) -> list[int]:
    """Return tracks by device, then by stream, numbers as numbers."""

    def key(track: int) -> tuple[str, int, str]:
        who = timeline.events.tracks[track]
        return (who.pid.rjust(12), int(who.tid) if who.tid.isdecimal() else 0, who.tid)

    return sorted((int(track) for track in tracks), key=key)
