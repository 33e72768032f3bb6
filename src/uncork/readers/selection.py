"""select: some rows of a table, and what that means for its sparse columns."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from uncork.events import ArgColumn, EventTable

_Number = TypeVar("_Number", bound=np.generic)
_BLOCK = 1 << 18
_PARTS = ("ints", "floats", "texts", "nested")


def select(table: EventTable, keep: npt.NDArray[np.bool_]) -> EventTable:
    """Return some rows of a table, tracks and strings shared."""
    kept = np.flatnonzero(keep)
    row_of = new_rows(keep)
    return replace(
        table,
        ts_ns=table.ts_ns[kept],
        dur_ns=table.dur_ns[kept],
        kind=table.kind[kept],
        name=table.name[kept],
        track=table.track[kept],
        args={
            key: part for key, column in table.args.items() if (part := renumbered(column, keep, row_of)) is not None
        },
    )


def compacted(column: npt.NDArray[_Number], keep: npt.NDArray[np.bool_]) -> npt.NDArray[_Number]:
    """Return a column without the rows that are left out, in the memory it already has.

    What stays moves to the front in blocks: a row's new place is never behind its old one, so nothing still needed is
    written over, and a large recording needs no second copy.
    """
    if not len(keep) or keep.all():
        return column
    first = int(np.argmin(keep))
    kept = np.flatnonzero(keep[first:]) + first
    for start in range(0, len(kept), _BLOCK):
        rows = kept[start : start + _BLOCK]
        column[first + start : first + start + len(rows)] = column[rows]
    return column[: first + len(kept)]


def new_rows(keep: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return the number each row has once the others are left out, (rows,); meaningless for those left out."""
    return np.cumsum(keep, dtype=np.int32) - np.int32(1)


def renumbered(
    column: ArgColumn, keep: npt.NDArray[np.bool_], row_of: npt.NDArray[np.int32] | None
) -> ArgColumn | None:
    """Return a column without the rows that are left out; None where nothing remains.

    Args:
        column: A column over all rows.
        keep: Which rows stay, (rows,).
        row_of: The new number of each row that stays, (rows,); None where all stay.
    """
    parts = {}
    for kind in _PARTS:
        part = getattr(column, kind)
        if part is not None:
            rows, values = part
            if row_of is not None and len(rows) and row_of[rows[-1]] != rows[-1]:
                kept = keep[rows]
                rows, values = row_of[rows[kept]], values[kept]
            if len(rows):
                parts[kind] = (rows, values)
    return ArgColumn(**parts) if parts else None


def merged(first: ArgColumn, second: ArgColumn) -> ArgColumn:
    """Return two columns of one key as one."""
    parts = {}
    for kind in _PARTS:
        one, two = getattr(first, kind), getattr(second, kind)
        if one is None or two is None:
            parts[kind] = two if one is None else one
        else:
            rows = np.concatenate([one[0], two[0]])
            order = np.argsort(rows, kind="stable")
            parts[kind] = (rows[order], np.concatenate([one[1], two[1]])[order])
    return ArgColumn(**parts)
