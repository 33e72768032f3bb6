"""SlowElements: simple arithmetic on the CPU that takes far longer per element at one place than at another."""

import json
import math
import re

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import operator_parts
from uncork.records import dataclass

ARITHMETIC = re.compile(r"^aten::(add|sub|mul|div|addcmul|addcdiv|lerp|square|sqrt|rsqrt|reciprocal)_?$")
LEAST_ELEMENTS = 1 << 16
"""Fewer elements take about as long as the call."""
SLOW_ELEMENT_NS = 2.0
"""Three tensors of 4 bytes at 6 GB/s, the slowest memory bus of a computer in use: arithmetic itself takes less."""


@dataclass(frozen=True)
class SlowElements(Measurement):
    """The slowest arithmetic, held against the fastest of the same operator and type in the same recording.

    Args:
        slowest: The operator at its place; None where all take about as long as memory lets them.
        ns: Its time per step.
        element_ns: Its time per element.
        usual_ns: That of the fastest.
    """

    slowest: Operator | None
    ns: int
    element_ns: float
    usual_ns: float

    @property
    def ratio(self) -> float:
        """Return how many times as long as the fastest it takes."""
        return self.element_ns / self.usual_ns if self.usual_ns else 1.0

    @classmethod
    def of(cls, rank: Rank) -> "SlowElements":
        """Return the slowest arithmetic of a rank's CPU; needs shapes."""
        if len(rank.timeline.device):
            raise MissingEvidence("cpu_work")
        parts = operator_parts(rank)
        if not any(part.shapes for part in parts):
            raise MissingEvidence("shapes")
        alike: dict[tuple[str, str], list[tuple[float, Operator]]] = {}
        for part in parts:
            elements = _elements(part.shapes) if ARITHMETIC.match(part.name) else 0
            if elements >= LEAST_ELEMENTS and part.cpu_usual_ns:
                per_element = part.cpu_usual_ns / part.calls_per_step / elements
                alike.setdefault((part.name.rstrip("_"), part.dtype), []).append((per_element, part))
        worst = cls(None, 0, 0.0, 0.0)
        for found in alike.values():
            usual, (slow, part) = min(one for one, _ in found), max(found, key=lambda one: one[0])
            if slow >= SLOW_ELEMENT_NS and part.cpu_usual_ns > worst.ns:
                worst = cls(part, part.cpu_usual_ns, slow, usual)
        return worst


def _elements(shapes: str) -> int:
    """Return the elements of the largest input."""
    try:
        dims = json.loads(shapes)
    except ValueError:  # cut short: too many inputs to show
        return 0
    sizes = [one for one in dims if isinstance(one, list) and all(isinstance(side, int) for side in one)]
    return max((math.prod(one) for one in sizes), default=0)
