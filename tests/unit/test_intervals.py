"""Intervals: union, intersection, gaps and cover, by hand."""

import numpy as np
import pytest

from uncork import intervals as iv


def rows(*pairs: tuple[int, int]) -> np.ndarray:
    """Return a set of intervals from pairs."""
    return np.array(pairs, np.int64).reshape(-1, 2)


def test_overlapping_touching_and_empty_rows_become_one_sorted_set():
    """Union sorts, joins what overlaps or touches, and drops empty and negative rows."""
    assert iv.union(rows((30, 40), (0, 10), (10, 15), (5, 12), (20, 20), (50, 45))).tolist() == [[0, 15], [30, 40]]


def test_union_of_several_sets_is_the_union_of_all_rows():
    """Sets that overlap each other count once."""
    assert iv.union(rows((0, 10)), rows((5, 20)), rows((30, 31))).tolist() == [[0, 20], [30, 31]]


def test_intervals_are_made_from_starts_and_ends():
    """The constructor merges as union does."""
    assert iv.intervals([5, 0], [9, 6]).tolist() == [[0, 9]]


def test_intersection_keeps_what_lies_in_both():
    """One row may meet several of the other set; touching ends share nothing."""
    left, right = rows((0, 10), (20, 30)), rows((2, 4), (8, 22), (30, 40))
    assert iv.intersect(left, right).tolist() == [[2, 4], [8, 10], [20, 22]]


def test_complement_gives_the_gaps_within_a_range():
    """Gaps before, between and after; the range cuts rows that reach over its ends."""
    assert iv.complement(rows((2, 4), (6, 20)), 3, 30).tolist() == [[4, 6], [20, 30]]
    assert iv.complement(iv.EMPTY, 3, 5).tolist() == [[3, 5]]
    assert iv.complement(rows((0, 10)), 3, 5).tolist() == []


def test_subtraction_removes_the_second_set():
    """Rows are split where the second set lies inside."""
    assert iv.subtract(rows((0, 10), (20, 30)), rows((4, 6), (8, 22))).tolist() == [[0, 4], [6, 8], [22, 30]]
    assert iv.subtract(rows((0, 10)), iv.EMPTY).tolist() == [[0, 10]]


def test_clip_cuts_to_a_range_and_an_empty_range_holds_nothing():
    """Clip is intersection with one interval."""
    assert iv.clip(rows((0, 10), (20, 30)), 5, 25).tolist() == [[5, 10], [20, 25]]
    assert iv.clip(rows((0, 10)), 7, 7).tolist() == []


def test_total_is_the_summed_length():
    """10 + 5 ns; nothing for no rows."""
    assert iv.total_ns(rows((0, 10), (20, 25))) == 15
    assert iv.total_ns(iv.EMPTY) == 0


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 100, 15), (5, 22, 7), (10, 20, 0), (-10, 5, 5), (23, 24, 1), (22, 5, 0), (40, 50, 0)],
)
def test_cover_is_how_much_of_each_query_lies_in_the_set(start: int, end: int, expected: int):
    """Queries may lie before, across, between and after the rows ``[0, 10)`` and ``[20, 25)``."""
    assert iv.covered_ns(rows((0, 10), (20, 25)), [start], [end]).tolist() == [expected]


def test_contains_is_half_open():
    """The start belongs to an interval, the end does not."""
    assert iv.contains(rows((0, 10), (20, 25)), [-1, 0, 9, 10, 20, 25]).tolist() == [
        False,
        True,
        True,
        False,
        True,
        False,
    ]
    assert iv.contains(iv.EMPTY, [1]).tolist() == [False]
