"""What makes a late rank late: the finding of its own recording that costs it more than it costs the others."""

from collections.abc import Sequence
from dataclasses import replace

from uncork.findings import Bottleneck, Finding
from uncork.measure import Measured
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import EXPLAINS_WAIT
from uncork.quantiles import median
from uncork.rules import assess

LATE = "late-rank"
_MORE_WORK, _MOST_WORK = "balance-work", "dominant-operator"
"""A rank that computes more has more to do: which operator does it says so; how it could be done faster is no cause."""
_MOST_OTHERS = 8
"""The median of so many ranks is that of all, for telling what one rank alone has."""
_Key = tuple[str, str | None, str | None]


def with_cause(findings: Sequence[Finding], ranks: Sequence[Measured], numbers: Sequence[int]) -> list[Finding]:
    """Return the findings, the one of a late rank with what its own recording shows, where anything does.

    Args:
        findings: Of all ranks together.
        ranks: The measurements of each.
        numbers: The rank each belongs to.
    """
    return [_explained(one, ranks, numbers) if one.rule == LATE else one for one in findings]


def _explained(late: Finding, ranks: Sequence[Measured], numbers: Sequence[int]) -> Finding:
    """Return the finding of a late rank with the place of what the rank does more of than the others."""
    place = numbers.index(late.location.rank or 0)
    named = {int(one) for one in str(late.params["late"]).split(",")}
    others = [measured for measured, number in zip(ranks, numbers, strict=True) if number not in named]
    others = others[:: max(len(others) // _MOST_OTHERS, 1)][:_MOST_OTHERS]
    usual = [{_key(one): one.cost_ns_per_step for one in _alone(other)} for other in others]

    def excess_ns(one: Finding) -> float:
        return one.cost_ns_per_step - (median([costs.get(_key(one), 0) for costs in usual]) if usual else 0)

    work = _MORE_WORK in late.advice
    own = max((one for one in _alone(ranks[place]) if not work or one.rule == _MOST_WORK), key=excess_ns, default=None)
    if own is None or excess_ns(own) < EXPLAINS_WAIT * late.cost_ns_per_step:
        return late
    behind = {"rule": own.rule, "params": dict(own.params), "excess_ns": round(excess_ns(own))}
    return replace(
        late, location=replace(own.location, rank=late.location.rank), params={**late.params, "behind": behind}
    )


def _alone(measured: Measured) -> list[Finding]:
    """Return what the rules find in one rank's recording, without what waits for other ranks."""
    ledger = measured.get(StepLedger)
    if not isinstance(ledger, StepLedger):
        return []
    found, _, _ = assess([measured], [0], ledger.mean_step_ns)
    return [one for one in found if one.bottleneck is not Bottleneck.COMMUNICATION]


def _key(one: Finding) -> _Key:
    return one.rule, one.location.file, one.location.function
