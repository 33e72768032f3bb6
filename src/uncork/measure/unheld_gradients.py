"""UnheldGradients: backward work in modules whose parameters are in no optimiser and never change."""

from uncork.calltree import BACKWARD, PHASES
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass

MOST_NAMES = 3


@dataclass(frozen=True)
class UnheldGradients(Measurement):
    """Gradients that nobody applies; times are means per step, of the device where one works.

    Args:
        modules: Outermost modules that get such gradients, those with most backward work first.
        backward_ns: Time of the backward pass in them, and in what is inside them.
        largest: The operator of it that takes most time, None without any.
    """

    modules: tuple[str, ...]
    backward_ns: int
    largest: Operator | None

    @classmethod
    def of(cls, rank: Rank) -> "UnheldGradients":
        """Return a rank's gradients that no optimiser holds; needs what the recorder saw of the parameters."""
        run = rank.recording.run
        told = run.settings.get("gradients_unheld") if run else None
        if not isinstance(told, list):
            raise MissingEvidence("parameters")
        table, wanted = rank.made(OperatorTable), set(map(str, told))
        spent: dict[str, int] = dict.fromkeys(sorted(wanted), 0)
        parts: list[Operator] = []
        arrives: set[str] = set()
        for part in operator_parts(rank):
            path = _around(part.module or "", wanted)
            if path and part.phase == PHASES[BACKWARD]:
                parts.append(part)
                spent[path] += table.weight_ns(part)
                if part.name.endswith("AccumulateGrad"):
                    arrives.add(path)
        # A gradient may be an old one: of a forward without grad mode, or of one asked for by torch.autograd.grad.
        if not arrives:
            return cls((), 0, None)
        found = sorted((path for path in spent if spent[path]), key=lambda path: -spent[path])
        return cls(
            modules=tuple(found),
            backward_ns=sum(spent.values()),
            largest=max(parts, key=table.weight_ns),
        )

    @property
    def where(self) -> str:
        """Return the modules in one line."""
        return ", ".join(self.modules[:MOST_NAMES]) + (" …" if len(self.modules) > MOST_NAMES else "")


def _around(module: str, wanted: set[str]) -> str:
    """Return the path among the wanted ones that a module is, or is inside; empty for none."""
    parts = module.split(".")
    return next((path for end in range(1, len(parts) + 1) if (path := ".".join(parts[:end])) in wanted), "")
