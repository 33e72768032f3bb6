"""What other choices would save, from a trace's allocation events and what the recorder counted on the live objects."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from uncork.measure.memory_what_if import FULL_SHARE, Budget, InUse, Saving, savings

IntArray = npt.NDArray[np.int64]


def trace_savings(
    allocated: IntArray, between_bytes: int, known: Mapping[str, int], capacity_bytes: int, reserved_bytes: int
) -> tuple[Saving, ...]:
    """Return what each change saves at the peak, the largest first.

    What is there between steps stays; what a step adds to it are gradients, as far as they are not there between
    steps, and else activations.

    Args:
        allocated: Bytes in use over time, the peak among them.
        between_bytes: The least in use when a step begins.
        known: Category → bytes of parameters, gradients and optimiser state.
        capacity_bytes: Size of the device, 0 where nobody says.
        reserved_bytes: Most reserved, 0 where nobody says.
    """
    held = known.get("parameter", 0) + known.get("optimizer_state", 0)
    gradient = known.get("gradient", 0)
    lasting = min(gradient, max(between_bytes - held, 0))
    added = np.maximum(allocated - between_bytes, 0)
    passing = np.minimum(added, gradient - lasting)
    parts = {**known, "gradient": lasting}

    def curves(stays: Mapping[str, float]) -> tuple[IntArray, IntArray]:
        less = sum(round(size * (1 - stays.get(word, 1.0))) for word, size in parts.items())
        fixed = np.minimum(allocated, between_bytes) - less + passing * stays.get("gradient", 1.0)
        growing = (added - passing) * stays.get("activation", 1.0)
        return np.round(fixed).astype(np.int64), np.round(growing).astype(np.int64)

    room = max(int(FULL_SHARE * capacity_bytes) - reserved_bytes, 0) if capacity_bytes and reserved_bytes else 0
    return savings(InUse(curves, Budget(room)), {"activation", *(word for word, size in known.items() if size)})
