"""Rule: a predicate over measurements, and how it is declared."""

import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from uncork.findings import Bottleneck, Cost, Finding, Gain, NotAssessed
from uncork.measure import Measured, Measurement, Missing, MissingEvidence, Ranks
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.records import dataclass

Outcome = Cost | Iterable[Cost] | None
Predicate = Callable[..., Outcome]

REGISTERED: dict[str, "Rule"] = {}


@dataclass(frozen=True)
class Rule:
    """One cause that uncork can find.

    Args:
        id: The file's name with dashes (``dominant-operator``).
        bottleneck: Its class.
        predicate: Returns the cost(s) found, or None when the recording is clear of it.
        needs: Parameter → (measurement, whether it may be missing).
        hidden_by: Rules whose finding explains this one away.
        folder: Where its pages lie.
    """

    id: str
    bottleneck: Bottleneck
    predicate: Predicate
    needs: Mapping[str, tuple[type[Measurement], bool]]
    hidden_by: tuple[str, ...] = ()
    folder: Path = field(default_factory=Path)

    @property
    def has_page(self) -> bool:
        """Return whether its English page is there; a rule under way may lack it."""
        return (self.folder / f"{self.id.replace('-', '_')}.md").is_file()

    def check(self, ranks: Sequence[Measured], numbers: Sequence[int], step_ns: int) -> list[Finding] | NotAssessed:
        """Return the findings (empty: clear), or what was missing on every rank.

        A rank takes part when it has all the measurements that the rule cannot do without.
        """
        lacks: dict[str, None] = {}
        able: list[int] = []
        for place, measured in enumerate(ranks):
            missing = [
                what
                for kind, optional in self.needs.values()
                if not optional and isinstance(value := measured[kind], Missing)
                for what in value.what
            ]
            lacks.update(dict.fromkeys(missing))
            if not missing:
                able.append(place)
        if not able:
            return NotAssessed(self.id, tuple(lacks) or ("events",))
        arguments = {name: self._gather(kind, ranks, numbers, able) for name, (kind, _) in self.needs.items()}
        try:
            outcome = self.predicate(**arguments)
            costs = [outcome] if isinstance(outcome, Cost) else list(outcome or ())
        except MissingEvidence as lack:  # what only all ranks together can lack
            return NotAssessed(self.id, lack.what)
        machine = ranks[able[0]].get(Machine)
        shared: dict[str, object] = dict(machine.kept) if isinstance(machine, Machine) else {"accelerator": "cuda"}
        ledger = ranks[able[0]].get(StepLedger)
        if isinstance(ledger, StepLedger) and not ledger.marked:
            shared["unmarked"] = True  # titles then speak of the time, not of each step
        return [self._finding(cost, step_ns, shared) for cost in costs]

    @staticmethod
    def _gather(
        kind: type[Measurement], ranks: Sequence[Measured], numbers: Sequence[int], able: Sequence[int]
    ) -> Ranks[Measurement] | None:
        """Return a measurement of the ranks that take part; None where one of them lacks it."""
        values = [ranks[place][kind] for place in able]
        if any(isinstance(value, Missing) for value in values):
            return None
        return Ranks([value for value in values if not isinstance(value, Missing)], [numbers[place] for place in able])

    def _finding(self, cost: Cost, step_ns: int, shared: Mapping[str, object]) -> Finding:
        share = min(cost.ns_per_step / step_ns, 1.0) if step_ns else 0.0
        # Of a rank that stands out the shares are of its own step: nothing gives back more than it costs.
        most = share if cost.ns_per_step else 1.0
        return Finding(
            rule=self.id,
            bottleneck=self.bottleneck,
            cost_ns_per_step=cost.ns_per_step,
            share=share,
            gain=Gain(min(cost.gain.low, most), min(cost.gain.high, most)),
            confidence=cost.confidence,
            location=cost.location,
            evidence=cost.evidence,
            advice=cost.advice,
            params={"cost_ns": cost.ns_per_step, "share": share, **shared, **cost.params},
        )


def rule(*, hidden_by: tuple[str, ...] = ()) -> Callable[[Predicate], Predicate]:
    """Return a decorator that declares a function as the rule of its file.

    The rule's id is the file's name, its class the folder's, and the measurements it needs are its parameters'
    annotations: ``Ranks[LoaderWait]``, or ``Ranks[LoaderWait] | None`` where it can do without. All hold the same
    ranks in the same order; what only the ranks together can lack, the rule says by raising `MissingEvidence`.

    Args:
        hidden_by: Ids of rules whose finding explains this one away.
    """

    def declare(predicate: Predicate) -> Predicate:
        *_, folder, name = predicate.__module__.split(".")
        hints = {parameter: hint for parameter, hint in predicate.__annotations__.items() if parameter != "return"}
        made = Rule(
            id=name.replace("_", "-"),
            bottleneck=Bottleneck.NONE if folder == "hygiene" else Bottleneck(folder),
            predicate=predicate,
            needs={parameter: _need(hint) for parameter, hint in hints.items()},
            hidden_by=hidden_by,
            folder=Path(predicate.__code__.co_filename).parent,
        )
        REGISTERED[made.id] = made
        return predicate

    return declare


def _need(hint: object) -> tuple[type[Measurement], bool]:
    """Return the measurement that an annotation asks for, and whether None is allowed."""
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        optional, hint = True, parts[0]
    (kind,) = typing.get_args(hint)
    return kind, optional
