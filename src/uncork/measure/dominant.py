"""Dominant: the operators that compute, by the time they take, and what kind of work they do."""

import re

from uncork.calltree import BACKWARD_NODE
from uncork.host_causes import TINY_OP_NS
from uncork.kernels import COMPUTE
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.host_bandwidth import HostBandwidth
from uncork.measure.inference import MASK, drops_masks
from uncork.measure.kernels_table import KernelTable
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass

MOST = 3
"""The source article asks for the top three (requirement R5.1)."""
_KINDS = (
    ("conv", re.compile(r"conv", re.IGNORECASE)),
    ("attention", re.compile(r"attention|flash|fmha", re.IGNORECASE)),
    ("gemm", re.compile(r"mm(\b|_)|matmul|linear|gemm|einsum|cijk|nvjet", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Heavy:
    """An operator (where the host is not recorded, a kernel) that computes.

    Args:
        operator: Which.
        kind: ``conv gemm attention dropout other``.
        ns: Time per step that it takes itself.
    """

    operator: Operator
    kind: str
    ns: int


@dataclass(frozen=True)
class Dominant(Measurement):
    """What computes.

    Args:
        heaviest: Largest first.
        step_ns: Mean duration of a step.
        on_device: Whether a device computes; else the host.
    """

    heaviest: tuple[Heavy, ...]
    step_ns: int
    on_device: bool

    @classmethod
    def of(cls, rank: Rank) -> "Dominant":
        """Return what computes on a rank; unknown where device work is launched but not recorded."""
        on_device = len(rank.timeline.device) > 0
        try:
            table = rank.made(OperatorTable)
        except MissingEvidence:
            if not on_device:
                raise
            return _of_kernels(rank.made(KernelTable))
        if table.unseen_device:
            raise MissingEvidence("device")
        moving, drops = _moving(rank), drops_masks(operator_parts(rank))
        computing = [
            Heavy(
                operator,
                "dropout" if drops and operator.name == MASK else _kind(operator),
                operator.device_self_ns if on_device else operator.cpu_usual_ns,
            )
            for operator in table.operators
            if _computes(operator, on_device) and operator.name not in moving
        ]
        computing.sort(key=lambda heavy: -heavy.ns)
        if on_device and 2 * sum(heavy.ns for heavy in computing) < _compute_ns(rank.made(KernelTable)):
            # Graph replays and lost links: the operators around the launches do not show what runs.
            return _of_kernels(rank.made(KernelTable))
        return cls(tuple(computing[:MOST]), table.step_ns, on_device)

    def share(self, ns: int) -> float:
        """Return the share of the step that some time is."""
        return min(ns / self.step_ns, 1.0) if self.step_ns else 0.0


def _moving(rank: Rank) -> frozenset[str]:
    """Return the operators that only go over large tensors on the CPU: those are memory's, and have a rule."""
    try:
        return rank.made(HostBandwidth).names
    except MissingEvidence:
        return frozenset()


def _computes(operator: Operator, on_device: bool) -> bool:
    """Return whether an operator computes; views and allocations do not, whatever a lost link hangs on them."""
    if on_device:
        return operator.kernel_class in COMPUTE and operator.op_class not in {"view", "memory", "region"}
    if BACKWARD_NODE.search(operator.name):
        return False
    return operator.op_class == "compute" and operator.cpu_self_ns > TINY_OP_NS * operator.calls_per_step


def _compute_ns(table: KernelTable) -> int:
    return sum(table.class_ns.get(kind, 0) for kind in COMPUTE)


def _of_kernels(table: KernelTable) -> Dominant:
    """Return the heaviest kernels: without host operators, or where those do not show what runs."""
    computing = []
    for kernel in table.kernels:
        if kernel.kind in COMPUTE:
            operator = Operator(
                name=kernel.name, phase="", calls=kernel.calls, calls_per_step=kernel.calls_per_step, cpu_self_ns=0,
                cpu_total_ns=0, device_self_ns=kernel.device_ns, device_total_ns=kernel.device_ns,
                precision=kernel.precision, kernel=kernel.name, kernel_class=kernel.kind,
            )  # fmt: skip
            computing.append(Heavy(operator, _kind(operator), kernel.device_ns))
    return Dominant(tuple(computing[:MOST]), table.step_ns, on_device=True)


def _kind(operator: Operator) -> str:
    """Return what kind of work an operator does, by its name, else by its kernel's class."""
    named = next((kind for kind, pattern in _KINDS if pattern.search(operator.name)), None)
    by_kernel = "conv" if operator.kernel_class == "layout" else operator.kernel_class
    return named or (by_kernel if by_kernel in {"conv", "gemm", "attention"} else "other")
