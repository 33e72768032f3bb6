"""TimelineView: what the page's timeline draws, packed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from uncork.events import IntArray
from uncork.ledger import Ledger
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.views.by_frames import Note, by_frames
from uncork.measure.views.curves import Curve, memory_curves, sampled_curves
from uncork.measure.views.details import details
from uncork.measure.views.lanes import Lane, cause_lane, device_lanes, host_lanes, loader_lanes, step_lane
from uncork.measure.views.names import Names
from uncork.measure.views.packed import pack
from uncork.measure.views.sentences import Pattern, longest, patterns
from uncork.records import dataclass
from uncork.timeline import Timeline

MOST_EVENTS = 1_500_000
"""At about 5 bytes an event this keeps the page near 8 MB, and its memory below 300 MB."""
MOST_BLOCK_BYTES = 10_000_000
"""Of a block as packed, a third more in the page: with the rest a report stays below 25 MB."""
_FEWEST_EVENTS = 1_000
Columns = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class TimelineView(Measurement):
    """The timeline of one rank as the page draws it.

    Args:
        block: The packed columns (`uncork.measure.views.packed`).
        events: Events in it.
        left_out: Events of the recording that are not in it.
    """

    view: ClassVar[bool] = True

    block: bytes
    events: int
    left_out: int

    @classmethod
    def of(cls, rank: Rank) -> "TimelineView":
        """Return the view of a rank's events; for the shape of the block see frontend/src/trace.ts."""
        if not len(rank.timeline.host) and not len(rank.timeline.device):
            raise MissingEvidence("events")
        most = MOST_EVENTS
        view = cls._made(rank, *_kept(rank.timeline, most))
        while len(view.block) > MOST_BLOCK_BYTES and most > _FEWEST_EVENTS:
            most //= 2
            view = cls._made(rank, *_kept(rank.timeline, most))
        return view

    @classmethod
    def stretch(cls, rank: Rank, from_ns: int, to_ns: int) -> "TimelineView":
        """Return the view with all events of one stretch of time, counted from the view's beginning, and no others.

        A stretch with too many events has the longest of them.
        """
        timeline = rank.timeline
        start, _ = _bounds(timeline)
        span = [(start + from_ns, start + to_ns)]
        host = np.flatnonzero(_within(timeline.host.start_ns, timeline.host.end_ns, span))
        device = np.flatnonzero(_within(timeline.device.start_ns, timeline.device.end_ns, span))
        host, device, notes = _longest_of(timeline, host, device, MOST_EVENTS)
        note = {"id": "page.timeline.stretch", "params": {"from_ns": from_ns, "to_ns": to_ns}}
        return cls._made(rank, host, device, [note, *notes], (from_ns, to_ns))

    @classmethod
    def _made(
        cls, rank: Rank, host: IntArray, device: IntArray, notes: list[Note], whole: tuple[int, int] | None = None
    ) -> "TimelineView":
        """Return the view of some host and device slices.

        Args:
            rank: Whose.
            host: Host slices shown.
            device: Device slices shown.
            notes: Messages on what is left out.
            whole: The stretch of time of which nothing is left out, where it is not all or nothing.
        """
        timeline = rank.timeline
        start, end = _bounds(timeline)
        names = Names()
        ledger, told = by_frames(rank)
        lanes = _lanes(rank, ledger, (host, device), names)
        if not lanes:
            raise MissingEvidence("events")
        numbers = names.keep(*(lane.name for lane in lanes))
        lanes = [replace(lane, name=name) for lane, name in zip(lanes, numbers, strict=True)]
        curves = [*_curves(rank), *sampled_curves(rank.recording.samples, start, end)]
        links, places = _links(timeline, lanes)
        detail, texts = details(rank.calltree, lanes)
        categories, of_name = names.category_codes()
        meta = {
            "origin_ns": str(start),
            "span_ns": max(end - start, 1),
            "tracks": [_track_meta(lane) for lane in lanes],
            "curves": [_curve_meta(curve, number) for number, curve in enumerate(curves)],
            "names": names.texts,
            "categories": categories,
            "texts": texts,
            "longest": _longest(timeline, places),
            "patterns": [_pattern_meta(one, start) for one in patterns(timeline, ledger)],
            "left_out": [*told, *notes],
            "whole_ns": whole or ([0, 0] if notes else [0, max(end - start, 1)]),
        }
        columns: Columns = {"category": of_name, **_event_columns(lanes, start), **detail, **links}
        of_curves = _curve_columns(curves, start)
        times = (name for name in of_curves if name.endswith("_t"))
        block = pack(meta, columns | of_curves, frozenset({"link_from", "link_to", *times}))
        left = len(timeline.host) + len(timeline.device) - len(host) - len(device)
        return cls(block, sum(len(lane.start_ns) for lane in lanes), left)


def _bounds(timeline: Timeline) -> tuple[int, int]:
    """Return (start, end) of all that a view may show, the same whatever is left out."""
    starts = [timeline.host.start_ns, timeline.device.start_ns, timeline.steps.start_ns]
    ends = [timeline.host.end_ns, timeline.device.end_ns, timeline.steps.end_ns]
    return int(np.concatenate(starts).min()), int(np.concatenate(ends).max())


def _lanes(rank: Rank, ledger: Ledger, kept: tuple[IntArray, IntArray], names: Names) -> list[Lane]:
    """Return every lane, in the order in which the page shows them."""
    timeline, (host, device) = rank.timeline, kept
    pinned = [step_lane(timeline, names), cause_lane(ledger, names)]
    streams = device_lanes(timeline, device, names)
    threads = host_lanes(timeline, host, names)
    loaders = loader_lanes(rank.recording.loader, *_bounds(timeline), names)
    return [*(one for one in pinned if one), *streams, *threads, *loaders]


def _pattern_meta(pattern: Pattern, start_ns: int) -> Mapping[str, object]:
    message = {"id": pattern.id, "params": pattern.params}
    return {"message": message, "from_ns": pattern.from_ns - start_ns, "to_ns": pattern.to_ns - start_ns}


def _kept(timeline: Timeline, most: int) -> tuple[IntArray, IntArray, list[Note]]:
    """Return the host and device slices to show: all; or of the worst, median and best steps; or the longest."""
    host, device, steps = timeline.host, timeline.device, timeline.steps
    all_host, all_device = np.arange(len(host)), np.arange(len(device))
    count = len(host) + len(device)
    if count <= most:
        return all_host, all_device, []
    notes: list[Note] = []
    if len(steps) >= 3:
        order = np.argsort(steps.dur_ns, kind="stable")
        chosen = sorted({int(order[0]), int(order[len(order) // 2]), int(order[-1])})
        spans = [(int(steps.start_ns[one]), int(steps.end_ns[one])) for one in chosen]
        all_host = all_host[_within(host.start_ns, host.end_ns, spans)]
        all_device = all_device[_within(device.start_ns, device.end_ns, spans)]
        params = {"count": count, "steps": ", ".join(steps.names[one] or str(one) for one in chosen)}
        notes.append({"id": "page.timeline.three_steps", "params": params})
    all_host, all_device, more = _longest_of(timeline, all_host, all_device, most)
    return all_host, all_device, notes + more


def _longest_of(
    timeline: Timeline, host: IntArray, device: IntArray, most: int
) -> tuple[IntArray, IntArray, list[Note]]:
    """Return as many of the slices as may be shown, the longest; and the message that says so."""
    count = len(host) + len(device)
    if count <= most:
        return host, device, []
    dur_ns = np.concatenate([timeline.host.dur_ns[host], timeline.device.dur_ns[device]])
    longest_ones = np.argpartition(dur_ns, count - most)[count - most :]
    kept = np.zeros(count, bool)
    kept[longest_ones] = True
    params = {"count": count, "shown": most, "least_ns": int(dur_ns[longest_ones].min())}
    note = {"id": "page.timeline.longest_only", "params": params}
    return host[kept[: len(host)]], device[kept[len(host) :]], [note]


def _within(start_ns: IntArray, end_ns: IntArray, spans: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    inside = np.zeros(len(start_ns), bool)
    for start, end in spans:
        inside |= (start_ns < end) & (end_ns > start)
    return inside


def _curves(rank: Rank) -> list[Curve]:
    """Return the memory curves of the recording, else of its deep window, which has a time of its own."""
    curves = memory_curves(rank.timeline, "memory")
    return curves or (memory_curves(rank.deep, "deep_memory") if rank.deep is not rank.timeline else [])


def _track_meta(lane: Lane) -> Mapping[str, object]:
    return {"group": lane.group, "role": lane.role, "label": lane.label, "rows": lane.rows, "main": lane.main}


def _curve_meta(curve: Curve, number: int) -> Mapping[str, object]:
    return {
        "group": curve.group,
        "label": curve.label,
        "unit": curve.unit,
        "most": curve.most,
        "series": [
            {"label": key, "time": f"c{number}_{place}_t", "value": f"c{number}_{place}_v"}
            for place, key in enumerate(curve.series)
        ],
    }


def _curve_columns(curves: Sequence[Curve], start_ns: int) -> Columns:
    columns: Columns = {}
    for number, curve in enumerate(curves):
        origin = start_ns
        if curve.group == "deep_memory":
            origin = min(int(when[0]) for when, _ in curve.series.values() if len(when))
        for place, (when, value) in enumerate(curve.series.values()):
            columns[f"c{number}_{place}_t"] = when - origin
            columns[f"c{number}_{place}_v"] = value.astype(np.float32)
    return columns


def _event_columns(lanes: Sequence[Lane], start_ns: int) -> Columns:
    """Return the columns gap (to the row's previous event), dur and name of all lanes, one after another."""
    gaps = []
    for lane in lanes:
        end = lane.start_ns + lane.dur_ns
        gap = lane.start_ns - np.concatenate([[start_ns], end[:-1]])
        first = np.cumsum([0, *lane.rows[:-1]])
        gap[first] = lane.start_ns[first] - start_ns
        gaps.append(gap)
    return {
        "gap": np.concatenate(gaps),
        "dur": np.concatenate([lane.dur_ns for lane in lanes]),
        "name": np.concatenate([lane.name for lane in lanes]),
    }


def _links(timeline: Timeline, lanes: Sequence[Lane]) -> tuple[Columns, Mapping[str, IntArray]]:
    """Return the pairs (launching event, device event) in order of the latter; and where each slice stands."""
    at = {
        "host": np.full(len(timeline.host), -1, np.int64),
        "device": np.full(len(timeline.device), -1, np.int64),
    }
    offset = 0
    for lane in lanes:
        if lane.role in at:
            at[lane.role][lane.source] = offset + np.arange(len(lane.source))
        offset += len(lane.source)
    launch = timeline.device.launch
    linked = np.flatnonzero((launch >= 0) & (at["device"] >= 0))
    linked = linked[at["host"][launch[linked]] >= 0]
    linked = linked[np.argsort(at["device"][linked], kind="stable")]
    return {"link_from": at["host"][launch[linked]], "link_to": at["device"][linked]}, at


def _longest(timeline: Timeline, at: Mapping[str, IntArray]) -> list[int]:
    slices, on_device = longest(timeline)
    return [int(place) for place in at["device" if on_device else "host"][slices] if place >= 0]
