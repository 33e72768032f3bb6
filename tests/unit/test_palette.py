"""The page's colours: classes of causes can be told apart by people who see colours otherwise, and texts on them read.

Simulation of deuteranopia and protanopia: Machado, Oliveira and Fernandes (2009), severity 1, in linear RGB; distances
are CIE 1976 ΔE; contrast is WCAG 2.1's.
"""

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from uncork.render.breakdown import palette

Array = npt.NDArray[np.float64]
CLASSES = ("gemm", "bandwidth", "comm", "data_loading", "dispatch", "unexplained")
SIGHT = {
    "usual": np.eye(3),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LEAST_DISTANCE = 12.7
"""What the best palette of a search over 480 had; two or three can just be told apart side by side."""


def _linear(colour: str) -> Array:
    value = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def _lab(linear: Array) -> Array:
    scaled = TO_XYZ @ np.clip(linear, 0, 1) / np.array([0.9505, 1, 1.089])
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_classes_are_told_apart(sight: str) -> None:
    """Any two classes lie further apart than what can just be seen, four times over."""
    fills = palette()["fills"]
    seen = {name: _lab(SIGHT[sight] @ _linear(fills[name])) for name in CLASSES}
    distance = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(CLASSES, 2)}
    nearest = min(distance, key=distance.__getitem__)
    assert distance[nearest] >= LEAST_DISTANCE, (nearest, distance[nearest])


def test_names_can_be_read_on_every_fill() -> None:
    """Dark ink on each fill: a contrast of 4.5 or more."""
    ink = float(TO_XYZ[1] @ _linear(palette()["ink"]))
    for name, fill in palette()["fills"].items():
        contrast = (float(TO_XYZ[1] @ _linear(fill)) + 0.05) / (ink + 0.05)
        assert contrast >= 4.5, (name, contrast)
