"""Doubles: operators that compute in double precision."""

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass


@dataclass(frozen=True)
class Doubles(Measurement):
    """What computes in double precision; its time is the device's, where one works.

    Args:
        share: Share of the computing operators' time that theirs is.
        calls: Their calls per step.
        largest: The one that takes most time, with its place; None without any.
    """

    share: float
    calls: float
    largest: Operator | None

    @classmethod
    def of(cls, rank: Rank) -> "Doubles":
        """Return the double-precision operators of a rank; needs the types of inputs, or kernels that name theirs."""
        table = rank.made(OperatorTable)
        if table.unseen_device:
            raise MissingEvidence("device")
        computing = [part for part in operator_parts(rank) if part.op_class == "compute" and part.phase != "loading"]
        if computing and not any(part.dtype or part.precision for part in computing):
            raise MissingEvidence("shapes")
        spent = [part.device_self_ns if table.on_device else part.cpu_usual_ns for part in computing]
        found = {place: ns for place, ns in enumerate(spent) if is_double(computing[place])}
        return cls(
            share=sum(found.values()) / max(sum(spent), 1),
            calls=sum(computing[place].calls_per_step for place in found),
            largest=computing[max(found, key=lambda place: found[place])] if found else None,
        )


def is_double(operator: Operator) -> bool:
    """Return whether an operator computes in double precision."""
    return "fp64" in (operator.precision, operator.dtype)
