"""assemble: Scanned → EventTable: kinds, tracks, whole slices, sound times."""

from collections import Counter

import numpy as np
import numpy.typing as npt

from uncork.events import ArgColumn, EventTable, Kind, Strings, Track
from uncork.readers.columns import ABSENT, NOT_A_NUMBER, Scanned, distinct
from uncork.readers.damage import sound_times
from uncork.readers.metadata import TrackNames, track_names
from uncork.readers.selection import compacted, merged, new_rows, renumbered
from uncork.readers.vocabulary import ARGS, FLOWS, kinds_of

BoolArray = npt.NDArray[np.bool_]


def assemble(scanned: Scanned) -> tuple[EventTable, Counter[str]]:
    """Return the events of a document, and how often what was repaired on the way.

    The document's columns are used up: they are let go as soon as the table has them, so that a large trace is never
    held twice.
    """
    repairs = Counter(scanned.repairs)
    repairs["invalid_utf8"] += _invalid_texts(scanned.strings)
    names = track_names(scanned)
    kind = kinds_of(scanned, names)
    keep = ~scanned.in_phase("ME")
    whole = scanned.in_phase("XB")
    _drop(keep, scanned.in_phase("\0") | (whole & (scanned.name < 0)), "odd_events", repairs)
    _pair(scanned, keep, repairs)
    _drop(keep, (scanned.ts_ns == ABSENT) | (scanned.ts_ns == NOT_A_NUMBER), "no_time", repairs)
    _drop(keep, whole & (scanned.dur_ns == NOT_A_NUMBER), "not_a_number", repairs)
    _drop(keep, whole & (scanned.dur_ns == ABSENT), "unfinished", repairs)
    scanned.dur_ns[~whole] = 0
    _drop(keep, scanned.dur_ns < 0, "negative_duration", repairs)
    del whole
    strings = _name_flows(scanned, kind)
    tracks, track = _tracks(scanned, names, compacted(scanned.track, keep))
    table = EventTable(
        ts_ns=compacted(scanned.ts_ns, keep),
        dur_ns=compacted(scanned.dur_ns, keep),
        kind=compacted(kind, keep),
        name=compacted(scanned.name, keep),
        track=track,
        tracks=tracks,
        strings=strings,
        args=_args(scanned, keep),
    )
    table = sound_times(table, scanned, repairs)
    np.add(table.ts_ns, _base_ns(scanned), out=table.ts_ns)
    vars(table).pop("end_ns", None)  # ends worked out while mending are those of the times as written
    return table, +repairs


def _invalid_texts(strings: Strings) -> int:
    """Return how many distinct texts are no UTF-8."""
    try:
        bytes(strings.blob).decode()
    except UnicodeDecodeError:
        return sum("\ufffd" in strings.text(index) for index in range(len(strings)))
    return 0


def _base_ns(scanned: Scanned) -> int:
    """Return what is to be added to every time, as newer versions of Kineto write it."""
    base = scanned.header.get("baseTimeNanoseconds")
    return base if isinstance(base, int) and not isinstance(base, bool) and 0 <= base < 2**62 else 0


def _drop(keep: BoolArray, wrong: BoolArray, repair: str, repairs: Counter[str]) -> None:
    """Leave out wrong events and count them."""
    dropped = keep & wrong
    repairs[repair] += int(np.count_nonzero(dropped))
    keep &= ~dropped


def _pair(scanned: Scanned, keep: BoolArray, repairs: Counter[str]) -> None:
    """Give each beginning (B) the duration to its end (E); an end is no event of its own.

    An end that has a name closes the latest open beginning of that name, so that two at the same time, in any order,
    are not taken for one another; else, and where none is open, it closes the latest of its thread.
    """
    ends = scanned.in_phase("E")
    rows = np.flatnonzero(ends | (scanned.in_phase("B") & keep))
    if not len(rows):
        return
    rows = rows[np.argsort(scanned.ts_ns[rows], kind="stable")]
    columns = (scanned.track[rows], scanned.name[rows], ends[rows], scanned.ts_ns[rows])
    stacks: dict[int | tuple[int, int], list[int]] = {}  # of a thread, and of each name on it
    still_open: set[int] = set()
    for row, track, name, is_end, time in zip(rows.tolist(), *(column.tolist() for column in columns), strict=True):
        of_thread, of_name = stacks.setdefault(track, []), stacks.setdefault((track, name), [])
        if not is_end:
            of_thread.append(row)
            of_name.append(row)
            still_open.add(row)
            continue
        begin = _latest(of_name, still_open)
        if begin is None:
            begin = _latest(of_thread, still_open)
        if begin is None:
            repairs["unpaired"] += 1
        else:
            still_open.remove(begin)
            scanned.dur_ns[begin] = time - int(scanned.ts_ns[begin])
    repairs["unpaired"] += len(still_open)
    keep[list(still_open)] = False


def _latest(stack: list[int], still_open: set[int]) -> int | None:
    """Return the last row of a stack that is still open, taken off it with those that are not; None where none is."""
    while stack:
        row = stack.pop()
        if row in still_open:
            return row
    return None


def _name_flows(scanned: Scanned, kind: npt.NDArray[np.uint8]) -> Strings:
    """Name each flow by its category in its newest spelling; return the strings with what that adds."""
    name = scanned.name
    flows = np.flatnonzero((kind == Kind.FLOW_START) | (kind == Kind.FLOW_END))
    categories = scanned.forms[:, 1][scanned.form[flows]].astype(np.int32)
    extra: dict[str, int] = {}
    known: dict[str, int] = {}
    for index in distinct(categories, len(scanned.strings)):
        text = scanned.text(index)
        newest = FLOWS.get(text, text)
        place = known.setdefault(newest, index if newest == text and index >= 0 else -1)
        if place < 0:
            place = known[newest] = extra.setdefault(newest, len(scanned.strings) + len(extra))
        name[flows[categories == index]] = place
    if (name < 0).any():
        name[name < 0] = extra.setdefault("", len(scanned.strings) + len(extra))
    if not extra:
        return scanned.strings
    return scanned.strings.and_more([text.encode() for text in extra])


def _tracks(
    scanned: Scanned, names: TrackNames, track: npt.NDArray[np.int32]
) -> tuple[tuple[Track, ...], npt.NDArray[np.int32]]:
    """Return the tracks that kept events lie on, and each event's."""
    place: dict[tuple[str, str], int] = {}
    number = np.zeros(len(scanned.tracks), np.int32)
    for index in distinct(track, len(scanned.tracks)):
        pid, tid = scanned.tracks[index].tolist()
        number[index] = place.setdefault((scanned.text(pid), scanned.text(tid)), len(place))
    tracks = tuple(
        Track(pid, tid, (names.threads.get((pid, tid)) or names.processes.get(pid, "")).strip()) for pid, tid in place
    )
    return tracks, number[track] if len(number) else track


def _args(scanned: Scanned, keep: BoolArray) -> dict[str, ArgColumn]:
    """Return the arguments of the kept events under their newest spelling."""
    found: dict[str, ArgColumn] = {}
    row_of = None if keep.all() else new_rows(keep)
    for key in list(scanned.args):
        part = renumbered(scanned.args.pop(key), keep, row_of)
        if part is not None:
            newest = ARGS.get(key, key)
            found[newest] = merged(found[newest], part) if newest in found else part
    return found
