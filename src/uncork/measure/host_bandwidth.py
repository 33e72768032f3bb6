"""HostBandwidth: operators on the CPU that mostly move large tensors, not compute."""

import re
from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from uncork.calltree import PHASES
from uncork.host_causes import TINY_OP_NS
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operator_groups import OperatorGroups, group_operators
from uncork.measure.operators import OperatorTable, deep_parts
from uncork.operators import operator_class
from uncork.records import dataclass

BoolArray = npt.NDArray[np.bool_]

MOVES = re.compile(
    r"^aten::(add|sub|rsub|mul|div|neg|abs|sgn|sign|sqrt|square|reciprocal|relu|clamp(_min|_max)?|hardtanh|leaky_relu"
    r"|threshold|threshold_backward|hardtanh_backward|leaky_relu_backward|sigmoid_backward|tanh_backward|where|maximum"
    r"|minimum|masked_fill|lerp|addcmul|addcdiv|eq|ne|lt|le|gt|ge|logical_\w+|bitwise_\w+|sum|mean|max|min|amax|amin)_?$"
)
"""About one operation for each number that is read: at 8 bytes and more an operation, far below the one operation a
byte where arithmetic begins to set a CPU's time (roofline model, Williams et al. 2009). Exponentials are not here."""
LEAST_CALL_BYTES = 4 << 20
"""A call that moves less may find its tensors in a core's own cache (2 MiB at most on today's CPUs)."""
CACHE_BYTES = 32 << 20
"""What such calls move in a step, at least: more than a shared cache of usual size keeps from one to the next."""
MOSTLY = 0.5


@dataclass(frozen=True)
class HostBandwidth(Measurement):
    """Operators with little arithmetic on large tensors, where the CPU computes; figures are means per step.

    Args:
        share: Their part of the own time of all operators that compute.
        calls: Their calls.
        moved_bytes: What they read and write, each tensor of a call once.
        largest: The operator (with its place) that takes most of the time, on the line that does; None where
            there is none.
        names: Of the operators that spend most of their time so.
    """

    share: float
    calls: float
    moved_bytes: int
    largest: Operator | None
    names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rank: Rank) -> "HostBandwidth":
        """Return them for a rank; needs operators that work on the CPU, and the sizes of their inputs."""
        table = rank.made(OperatorTable)
        if table.on_device or table.unseen_device:
            raise MissingEvidence("cpu_work")
        groups = group_operators(rank.deep_calltree)
        if not any(code >= 0 for code in groups.codes("Input Dims")):
            raise MissingEvidence("shapes")
        return _found(rank, groups)


def memory_bound_share(rank: Rank) -> float:
    """Return the part of the CPU's compute operators that only moves large tensors, 0 where that is not known."""
    try:
        return rank.made(HostBandwidth).share
    except MissingEvidence:
        return 0.0


def _computing(groups: OperatorGroups) -> BoolArray:
    """Return which groups compute in the steps, longer than a call without work."""
    loads = groups.tree.phase[groups.first] == PHASES.index("loading")
    computes = np.array([operator_class(name) == "compute" for name in groups.names], bool)
    found: BoolArray = computes & ~loads & (groups.cpu_usual_ns > TINY_OP_NS * groups.calls)
    return found


def _found(rank: Rank, groups: OperatorGroups) -> HostBandwidth:
    """Return the operators among the groups of the recording that knows sizes."""
    computing, own_ns = _computing(groups), groups.cpu_usual_ns
    moved = np.array([work.moved_bytes if work else 0 for work in groups.work], np.int64)
    names = np.array([MOVES.match(name) is not None for name in groups.names], bool)
    bound = computing & names & (moved >= LEAST_CALL_BYTES)
    steps = max(len(rank.deep.steps), 1)
    moved_bytes = int((moved * groups.calls)[bound].sum()) // steps
    if moved_bytes < CACHE_BYTES:
        return HostBandwidth(0.0, 0.0, 0, None)
    shares = _shares(groups, bound)
    _, line = np.unique(groups.tree.place[groups.first], return_inverse=True)
    most = np.bincount(line, own_ns * bound).argmax()
    return HostBandwidth(
        share=_share(shares, group_operators(rank.calltree)),
        calls=int(groups.calls[bound].sum()) / steps,
        moved_bytes=moved_bytes,
        largest=deep_parts(rank)[int((own_ns * (bound & (line == most))).argmax())],
        names=frozenset(name for name, share in shares.items() if share > MOSTLY),
    )


def _shares(groups: OperatorGroups, bound: BoolArray) -> dict[str, float]:
    """Return for each operator that computes what part of its time is in calls with large tensors."""
    whole, large = Counter[str](), Counter[str]()
    for name, own_ns, computes, is_large in zip(
        groups.names, groups.cpu_usual_ns.tolist(), _computing(groups).tolist(), bound.tolist(), strict=True
    ):
        whole[name] += own_ns * computes
        large[name] += own_ns * is_large
    return {name: large[name] / own_ns for name, own_ns in whole.items() if own_ns}


def _share(shares: Mapping[str, float], groups: OperatorGroups) -> float:
    """Return what part that is of the time of all such operators, in the recording whose times count."""
    whole_ns, bound_ns = 0, 0.0
    # Without sizes a group holds large and small tensors alike, so no call of it is unusual: its whole time counts.
    for name, own_ns in zip(groups.names, groups.cpu_self_ns.tolist(), strict=True):
        if name in shares:
            whole_ns += own_ns
            bound_ns += own_ns * shares[name]
    return bound_ns / max(whole_ns, 1)
