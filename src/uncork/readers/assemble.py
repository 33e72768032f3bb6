"""assemble: Scanned → EventTable: kinds, tracks, whole slices, sound times."""

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from uncork.events import ArgColumn, EventTable, IntArray, Kind, Strings, Track
from uncork.readers.columns import ABSENT, NOT_A_NUMBER, Scanned
from uncork.readers.metadata import TrackNames, track_names
from uncork.readers.vocabulary import ARGS, ASCEND_COMMUNICATION, FLOWS, kinds_of

BoolArray = npt.NDArray[np.bool_]


def assemble(scanned: Scanned) -> tuple[EventTable, Counter[str]]:
    """Return the events of a document, and how often what was repaired on the way."""
    repairs = Counter(scanned.repairs)
    names = track_names(scanned)
    kind = kinds_of(scanned, names.processes, _on_group_track(scanned, names))
    dur_ns = scanned.dur_ns.copy()
    keep = scanned.ph != ord("M")
    _drop(keep, _is_odd(scanned), "odd_events", repairs)
    _pair(scanned, dur_ns, keep, kind, repairs)
    whole = np.isin(scanned.ph, np.frombuffer(b"XB", np.uint8))
    _drop(keep, (scanned.ts_ns == ABSENT) | (scanned.ts_ns == NOT_A_NUMBER), "no_time", repairs)
    _drop(keep, whole & (dur_ns == NOT_A_NUMBER), "not_a_number", repairs)
    _drop(keep, whole & (dur_ns == ABSENT), "unfinished", repairs)
    dur_ns[~whole] = 0
    _drop(keep, dur_ns < 0, "negative_duration", repairs)
    kept = np.flatnonzero(keep)
    strings, name = _names(scanned, kind, kept)
    tracks, track = _tracks(scanned, names, kept)
    base = scanned.header.get("baseTimeNanoseconds")
    base_ns = base if isinstance(base, int) and not isinstance(base, bool) and 0 <= base < 2**62 else 0
    table = EventTable(
        ts_ns=scanned.ts_ns[kept],
        dur_ns=dur_ns[kept],
        kind=kind[kept],
        name=name,
        track=track,
        tracks=tracks,
        strings=strings,
        args=_args(scanned, keep),
    )
    table = _sound_times(table, scanned, repairs)
    return replace(table, ts_ns=table.ts_ns + base_ns), +repairs


def select(table: EventTable, keep: BoolArray) -> EventTable:
    """Return some rows of a table, tracks and strings shared."""
    kept = np.flatnonzero(keep)
    return replace(
        table,
        ts_ns=table.ts_ns[kept],
        dur_ns=table.dur_ns[kept],
        kind=table.kind[kept],
        name=table.name[kept],
        track=table.track[kept],
        args={key: part for key, column in table.args.items() if (part := _renumbered(column, keep)) is not None},
    )


def _drop(keep: BoolArray, wrong: BoolArray, repair: str, repairs: Counter[str]) -> None:
    """Leave out wrong events and count them."""
    dropped = keep & wrong
    repairs[repair] += int(np.count_nonzero(dropped))
    keep &= ~dropped


def _is_odd(scanned: Scanned) -> BoolArray:
    """Return which events are none: without a phase, or slices without a name."""
    named = np.isin(scanned.ph, np.frombuffer(b"XB", np.uint8))
    return (scanned.ph == 0) | (named & (scanned.name < 0))


def _on_group_track(scanned: Scanned, names: TrackNames) -> BoolArray:
    groups = [
        (pid, tid)
        for (pid, tid), name in names.threads.items()
        if name.startswith("Group") and names.processes.get(pid) in ASCEND_COMMUNICATION
    ]
    found = np.zeros(len(scanned), bool)
    for pid, tid in groups:
        found |= (scanned.pid == pid) & (scanned.tid == tid)
    return found


def _pair(scanned: Scanned, dur_ns: IntArray, keep: BoolArray, kind: npt.NDArray[np.uint8], repairs: Counter[str]) -> None:
    """Give each beginning (B) the duration to its end (E); an end is no event of its own."""
    ends = scanned.ph == ord("E")
    rows = np.flatnonzero((ends | (scanned.ph == ord("B"))) & keep)
    if not len(rows):
        return
    keep[ends] = False
    rows = rows[np.argsort(scanned.ts_ns[rows], kind="stable")]
    open_rows: dict[tuple[int, int], list[int]] = {}
    for row, pid, tid, is_end, time in zip(
        rows.tolist(),
        scanned.pid[rows].tolist(),
        scanned.tid[rows].tolist(),
        ends[rows].tolist(),
        scanned.ts_ns[rows].tolist(),
        strict=True,
    ):
        stack = open_rows.setdefault((pid, tid), [])
        if not is_end:
            stack.append(row)
        elif stack:
            begin = stack.pop()
            dur_ns[begin] = time - int(scanned.ts_ns[begin])
        else:
            repairs["unpaired"] += 1
    left = [row for stack in open_rows.values() for row in stack]
    repairs["unpaired"] += len(left)
    keep[left] = False
    kind[ends] = Kind.OTHER


def _names(scanned: Scanned, kind: npt.NDArray[np.uint8], kept: IntArray) -> tuple[Strings, npt.NDArray[np.int32]]:
    """Return the strings and each event's name; a flow's name is its category in its newest spelling."""
    name = scanned.name[kept].copy()
    flows = np.flatnonzero((kind[kept] == Kind.FLOW_START) | (kind[kept] == Kind.FLOW_END))
    categories = scanned.cat[kept][flows]
    extra: list[bytes] = []
    for index in np.unique(categories).tolist():
        text = scanned.strings.text(index) if index >= 0 else ""
        newest = FLOWS.get(text, text)
        if newest != text or index < 0:
            place = scanned.index_of(newest)
            if place < 0:
                place = len(scanned.strings) + len(extra)
                extra.append(newest.encode())
            index = place
        name[flows[categories == (index if newest == text else scanned.index_of(text))]] = index
    if (name < 0).any():
        name[name < 0] = len(scanned.strings) + len(extra)
        extra.append(b"")
    if not extra:
        return scanned.strings, name
    offsets = np.concatenate([scanned.strings.offsets, scanned.strings.offsets[-1] + np.cumsum([len(text) for text in extra])])
    return Strings(bytes(scanned.strings.blob) + b"".join(extra), offsets.astype(np.int64)), name


def _tracks(scanned: Scanned, names: TrackNames, kept: IntArray) -> tuple[tuple[Track, ...], npt.NDArray[np.int32]]:
    """Return the tracks in order of first sight, and each event's."""
    joint = (scanned.pid[kept].astype(np.int64) + 1) << 32 | (scanned.tid[kept].astype(np.int64) + 1)
    codes, first, place = np.unique(joint, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(codes), np.int32)
    rank[order] = np.arange(len(codes), dtype=np.int32)
    tracks = []
    for code in codes[order].tolist():
        pid, tid = (code >> 32) - 1, (code & 0xFFFFFFFF) - 1
        name = names.threads.get((pid, tid)) or names.processes.get(pid, "")
        tracks.append(
            Track(
                scanned.strings.text(pid) if pid >= 0 else "",
                scanned.strings.text(tid) if tid >= 0 else "",
                name.strip(),
            )
        )
    return tuple(tracks), rank[place.reshape(-1)]


def _args(scanned: Scanned, keep: BoolArray) -> dict[str, ArgColumn]:
    """Return the arguments of the kept events under their newest spelling."""
    found: dict[str, ArgColumn] = {}
    for key, column in scanned.args.items():
        part = _renumbered(column, keep)
        if part is not None:
            newest = ARGS.get(key, key)
            found[newest] = _merged(found[newest], part) if newest in found else part
    return found


def _renumbered(column: ArgColumn, keep: BoolArray) -> ArgColumn | None:
    """Return a column without the rows that are left out; None where nothing remains."""
    row_of = None if keep.all() else np.cumsum(keep, dtype=np.int64) - 1
    parts = {}
    for kind in ("ints", "floats", "texts", "nested"):
        part = getattr(column, kind)
        if part is not None:
            rows, values = part
            if row_of is not None:
                kept = keep[rows]
                rows, values = row_of[rows[kept]], values[kept]
            if len(rows):
                parts[kind] = (rows, values)
    return ArgColumn(**parts) if parts else None


def _merged(first: ArgColumn, second: ArgColumn) -> ArgColumn:
    """Return two columns of one key as one."""
    parts = {}
    for kind in ("ints", "floats", "texts", "nested"):
        one, two = getattr(first, kind), getattr(second, kind)
        if one is None or two is None:
            parts[kind] = one or two
        else:
            rows = np.concatenate([one[0], two[0]])
            order = np.argsort(rows, kind="stable")
            parts[kind] = (rows[order], np.concatenate([one[1], two[1]])[order])
    return ArgColumn(**parts)


def _sound_times(table: EventTable, scanned: Scanned, repairs: Counter[str]) -> EventTable:
    from uncork.readers.damage import sound_times

    return sound_times(table, scanned, repairs)
