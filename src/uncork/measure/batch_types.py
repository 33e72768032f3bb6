"""BatchTypes: double-precision tensors that come out of the loader, and what converting them costs."""

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass
from uncork.timeline import Timeline

_JOINS = frozenset({"aten::stack", "aten::cat"})
_CASTS = frozenset({"aten::_to_copy", "aten::copy_"})
LEAST_ELEMENTS = 4096
"""Smaller tensors (labels, scalars) cost their call, not their size."""


@dataclass(frozen=True)
class BatchTypes(Measurement):
    """Double-precision batches, per step.

    Args:
        joins: Double-precision tensors put together under the loader's next.
        casts: Large double-precision tensors converted or copied on the main thread, outside the loader.
        host_ns: Host time of both; recording types and stacks adds little to work on thousands of elements.
    """

    joins: float
    casts: float
    host_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "BatchTypes":
        """Return the double-precision work of a rank; without recorded input types it cannot be seen."""
        timeline = rank.deep
        host, table = timeline.host, timeline.events
        types = table.texts("Input type")[host.row]
        if not (types >= 0).any():
            raise MissingEvidence("shapes")
        inside = timeline.in_steps & (host.track == timeline.main_track)
        inside &= (host.kind == Kind.CPU_OP) & (types >= 0)
        loading = timeline.in_loader
        joins = _double(timeline, np.flatnonzero(inside & loading & timeline.named(_JOINS, Kind.CPU_OP)))
        named = timeline.named(_CASTS, Kind.CPU_OP)
        casts = _double(timeline, np.flatnonzero(inside & ~loading & named))
        casts = casts[host.ancestor_where(named, host.parent[casts]) < 0]
        steps = max(len(timeline.steps), 1)
        both = np.concatenate([joins, casts])
        return cls(
            joins=len(joins) / steps,
            casts=len(casts) / steps,
            host_ns=int(host.dur_ns[both].sum()) // steps,
        )


def _double(timeline: Timeline, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the slices among some whose large inputs are of double precision."""
    table, host = timeline.events, timeline.host
    types, dims = (table.texts(key)[host.row[places]] for key in ("Input type", "Input Dims"))
    pairs, back = np.unique(types * (len(table.strings) + 1) + dims + 1, return_inverse=True)
    large = []
    for kind, size in zip(*np.divmod(pairs, len(table.strings) + 1), strict=True):
        elements = _elements(table.strings.value(int(size) - 1)) if size else 0
        large.append(elements >= LEAST_ELEMENTS and _is_double(table.strings.value(int(kind))))
    found: npt.NDArray[np.int64] = places[np.array(large, bool)[back]]
    return found


def _is_double(types: object) -> bool:
    """Return whether an operator's inputs are doubles; a list of tensors is written as ``TensorList`` or a list."""
    flat = types if isinstance(types, list) else []
    names = [name for one in flat for name in (one if isinstance(one, list) else [one])]
    return "double" in names and "float" not in names


def _elements(dims: object) -> int:
    """Return the number of elements of an operator's largest input."""
    if not isinstance(dims, list) or not dims:
        return 0
    if all(isinstance(size, int) for size in dims):
        product = 1
        for size in dims:
            product *= size
        return product
    return max((_elements(one) for one in dims), default=0)
