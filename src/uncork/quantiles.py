"""median and quantile as numpy's, which load its masked arrays when first asked: 10 ms of every analysis."""

import math

import numpy as np
import numpy.typing as npt


def median(values: npt.ArrayLike) -> float:
    """Return the middle one of some numbers, of an even count the mean of the two in the middle."""
    found = np.asarray(values)
    high = len(found) // 2
    low = high - (len(found) % 2 == 0)
    ordered = np.partition(found, (low, high))
    return (float(ordered[low]) + float(ordered[high])) / 2


def quantile(values: npt.ArrayLike, share: float) -> float:
    """Return the number below which a share of some numbers lies, on the line between the two next to it."""
    ordered = np.sort(np.asarray(values))
    place = share * (len(ordered) - 1)
    low, high = float(ordered[math.floor(place)]), float(ordered[math.ceil(place)])
    part = place - math.floor(place)
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
