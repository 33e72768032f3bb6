"""Medians and quantiles are those of numpy."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from uncork.quantiles import median, quantile

NUMBERS = some.one_of(
    some.lists(some.integers(-(2**50), 2**50), min_size=1), some.lists(some.floats(-1e9, 1e9), min_size=1)
)


@pytest.mark.parametrize(("values", "middle"), [([3], 3), ([5, 1], 3), ([9, 1, 2], 2), ([1, 2, 4, 100], 3)])
def test_median_by_hand(values: list[int], middle: float) -> None:
    """One in the middle stands for itself, of two the mean."""
    assert median(values) == middle


@given(NUMBERS)
def test_as_numpy(values: list[float]) -> None:
    """To the last bit what numpy says, of integers and of fractions, in any order."""
    assert median(values) == np.median(values)
    for percent in (0, 5, 25, 50, 75, 90, 95, 100):
        assert quantile(values, percent / 100) == np.percentile(values, percent)


def test_loads_no_masked_arrays() -> None:
    """What they are for: numpy's masked arrays stay out of an analysis."""
    asked = "import sys; from uncork.quantiles import median, quantile; median([.5, 1.]); quantile([.5], .9)"
    told = subprocess.check_output([sys.executable, "-c", f"{asked}; print('numpy.ma' in sys.modules)"], text=True)
    assert told.strip() == "False"
