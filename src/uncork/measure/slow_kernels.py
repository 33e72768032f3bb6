"""SlowKernels: matrix work far under its roofline, and kernels that say of themselves that they are naive."""

import re

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.kernels_table import KernelTable
from uncork.measure.operator import Operator
from uncork.measure.operators import operator_parts
from uncork.records import dataclass

NAIVE = re.compile(r"naive", re.IGNORECASE)
FAR_UNDER_SHARE = 0.1
"""A tenth of the roofline; TraceLens' lowest band ends at 30 %, but much sound work lies there too."""
LEAST_CALL_NS = 100_000
"""Shorter kernels are bound by latency, whatever they compute."""
SHORT_SEQUENCE = 512
"""Attention over less reaches 5 to 15 % of its roofline at best (TraceLens' agent, expected bands)."""


@dataclass(frozen=True)
class SlowKernel:
    """Work that a better kernel would do much faster.

    Args:
        operator: Which; only its kernel is known where the host is not recorded.
        ns: Its time per step.
        naive: Whether its kernel is a fallback by its own name.
    """

    operator: Operator
    ns: int
    naive: bool


@dataclass(frozen=True)
class SlowKernels(Measurement):
    """Matrix work far under its roofline.

    Args:
        found: Largest first.
        judged: Whether anything could be held against a roofline or a name.
        step_ns: Mean duration of a step.
    """

    found: tuple[SlowKernel, ...]
    judged: bool
    step_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "SlowKernels":
        """Return the slow kernels of a rank; without device work there are none."""
        table = rank.made(KernelTable)
        try:
            parts = operator_parts(rank)
        except MissingEvidence:
            parts = []
        found = [slow for part in parts if (slow := _judge(part))]
        if not parts:
            found = [
                SlowKernel(
                    Operator(kernel.name, "", kernel.calls, kernel.calls_per_step, 0, 0, kernel.device_ns, 0), ns, True
                )
                for kernel in table.kernels
                if NAIVE.search(kernel.name) and (ns := kernel.device_ns)
            ]
        return cls(
            found=tuple(sorted(found, key=lambda slow: -slow.ns)[:3]),
            judged=bool(found) or any(part.roofline_share is not None and part.sizes for part in parts),
            step_ns=table.step_ns,
        )


def _judge(part: Operator) -> SlowKernel | None:
    """Return a part as a slow kernel, None where it is not one."""
    if NAIVE.search(part.kernel) and part.device_self_ns:
        return SlowKernel(part, part.device_self_ns, naive=True)
    if not part.sizes or part.roofline_share is None or part.roofline_share >= FAR_UNDER_SHARE:
        return None
    short = int(str(part.sizes.get("query_length", SHORT_SEQUENCE))) < SHORT_SEQUENCE
    depthwise = int(str(part.sizes.get("groups", 1))) > 1
    each_ns = part.device_total_ns / part.calls_per_step if part.calls_per_step else 0.0
    if short or depthwise or each_ns < LEAST_CALL_NS:
        return None
    return SlowKernel(part, part.device_total_ns, naive=False)
