"""Intervals against the plainest model there is: sets of whole nanoseconds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from uncork import intervals as iv

SPAN = 40
PAIRS = st.lists(st.tuples(st.integers(0, SPAN), st.integers(0, SPAN)), max_size=12)


def merged(pairs: list[tuple[int, int]]) -> np.ndarray:
    """Return the merged set of any pairs."""
    return iv.union(np.array(pairs, np.int64).reshape(-1, 2))


def moments(pairs: list[tuple[int, int]]) -> set[int]:
    """Return the nanoseconds that any pairs hold: the model."""
    return {moment for start, end in pairs for moment in range(start, end)}


def held(found: np.ndarray) -> set[int]:
    """Return the nanoseconds of a result, after checking that it is merged."""
    flat = found.ravel()
    assert (np.diff(flat) > 0).all(), "rows are sorted, not empty, and do not touch"
    return moments([(int(start), int(end)) for start, end in found])


@given(PAIRS)
def test_union_holds_exactly_the_moments_of_its_rows(pairs: list[tuple[int, int]]):
    """Order, overlap and repetition of the rows do not matter."""
    assert held(merged(pairs)) == moments(pairs)
    assert iv.total_ns(merged(pairs)) == len(moments(pairs))


@given(PAIRS, PAIRS)
def test_set_operations_agree_with_sets(left: list[tuple[int, int]], right: list[tuple[int, int]]):
    """Intersection, difference and union are those of the moments."""
    a, b = merged(left), merged(right)
    assert held(iv.intersect(a, b)) == moments(left) & moments(right)
    assert held(iv.subtract(a, b)) == moments(left) - moments(right)
    assert held(iv.union(a, b)) == moments(left) | moments(right)


@given(PAIRS, st.integers(0, SPAN), st.integers(0, SPAN))
def test_a_range_is_its_covered_part_and_its_gaps(pairs: list[tuple[int, int]], start: int, end: int):
    """Busy plus idle is the range: nothing is lost or counted twice."""
    a, window = merged(pairs), set(range(start, end))
    assert held(iv.clip(a, start, end)) == moments(pairs) & window
    assert held(iv.complement(a, start, end)) == window - moments(pairs)
    assert iv.covered_ns(a, [start], [end]).tolist() == [len(moments(pairs) & window)]


@given(PAIRS)
def test_contains_agrees_with_membership(pairs: list[tuple[int, int]]):
    """A moment is contained when the model holds it."""
    asked = range(-1, SPAN + 2)
    assert iv.contains(merged(pairs), list(asked)).tolist() == [moment in moments(pairs) for moment in asked]
