"""Nesting: the compiled sweep and the portable one say the same about any slices, sound or broken."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.nesting import nest, portable_levels
from uncork.readers.kineto import read

levels = pytest.importorskip("uncork.levels", reason="the compiled sweep is not built here").levels

Slice = tuple[int, int, int]
SLICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(-2, 30)), max_size=60)


def columns(slices: list[Slice]) -> list["np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Return track, start and end of (track, start, duration) in the order of nesting."""
    ordered = sorted(slices, key=lambda one: (one[0], one[1], -one[2]))
    rows = [(track, start, start + lasts) for track, start, lasts in ordered]
    return [np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else [[], [], []])]


@given(SLICES)
def test_both_sweeps_agree(slices: list[Slice]) -> None:
    """Parent and depth are the same, also where slices overlap without nesting or have no length."""
    for compiled, portable in zip(levels(*columns(slices)), portable_levels(*columns(slices)), strict=True):
        assert compiled.tolist() == portable.tolist()


@given(SLICES)
def test_depth_counts_what_is_open(slices: list[Slice]) -> None:
    """The depth is the number of earlier slices of the track that have not ended, counted one by one."""
    track, start, end = columns(slices)
    expected = [
        sum(track[j] == track[i] and max(end[j], start[j] + 1) > start[i] for j in range(i)) for i in range(len(track))
    ]
    assert levels(track, start, end)[1].tolist() == expected


def test_a_known_nest() -> None:
    """A slice, two in it, one of which holds a third; and one of another thread at the same time."""
    track, start, end = columns([(0, 0, 100), (0, 10, 20), (0, 40, 50), (0, 45, 5), (1, 45, 5)])
    parent, depth = levels(track, start, end)
    assert (parent.tolist(), depth.tolist()) == ([-1, 0, 0, 2, -1], [0, 1, 1, 2, 0])


def test_what_begins_at_once_nests_by_length_then_by_number(tmp_path: Path) -> None:
    """Of whole microseconds many are equal: the longer holds the shorter, then the earlier begun (``Ev Idx``)."""
    written = [("inner", 5, 3), ("outer", 9, 7), ("middle", 5, 2), ("root", 9, 1)]  # name, duration, number
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 40, "dur": dur, "args": {"Ev Idx": number}}
        for name, dur, number in written
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(events))
    table = read(path)[0].events
    assert table is not None
    slices = nest(table, np.arange(4))
    assert table.names(slices.row) == ["root", "outer", "middle", "inner"]
    assert slices.parent.tolist() == [-1, 0, 1, 2]
    assert slices.self_ns.tolist() == [0, 4000, 0, 5000]
