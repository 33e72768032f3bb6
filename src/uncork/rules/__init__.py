"""The rules: ``<class>/<name>.py`` (predicate and cost) beside ``<name>.md`` and ``<name>.zh.md`` (its pages)."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache

from uncork.errors import strict
from uncork.findings import Finding, NotAssessed
from uncork.measure import Measured
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import REGISTERED, Rule


@cache
def rules() -> Mapping[str, Rule]:
    """Return every rule by id, found by looking through the folders."""
    for folder in pkgutil.iter_modules(__path__):
        if folder.ispkg:
            package = importlib.import_module(f"{__name__}.{folder.name}")
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(REGISTERED.items()))


def assess(
    ranks: Sequence[Measured], numbers: Sequence[int], step_ns: int, unmeasured: str | None = None
) -> tuple[list[Finding], list[NotAssessed], list[str]]:
    """Return what all rules say: findings by what they could give back, what could not be assessed, what is clear.

    Args:
        ranks: The measurements of each rank.
        numbers: The rank each belongs to.
        step_ns: Mean step time, the whole of which findings state a share.
        unmeasured: What the recording lacks so badly that no share of its steps means anything; None where they do.
    """
    findings: list[Finding] = []
    not_assessed: list[NotAssessed] = []
    clear: list[str] = []
    for one in rules().values():
        outcome = _checked(one, ranks, numbers, step_ns)
        if unmeasured and not isinstance(outcome, NotAssessed) and _speaks_of_steps(one):
            outcome = NotAssessed(one.id, (unmeasured,))
        if isinstance(outcome, NotAssessed):
            not_assessed.append(outcome)
        elif outcome:
            findings.extend(outcome)
        else:
            clear.append(one.id)
    found = {finding.rule for finding in findings}
    shown = [finding for finding in findings if not found & set(rules()[finding.rule].hidden_by)]
    shown.sort(key=_order)
    return shown, not_assessed, clear


def _order(finding: Finding) -> tuple[bool, float, int, float, int, str]:
    """Return a key that puts first what stopped the program, then what could give back most time.

    Of head room, what is certain comes first and then what is largest.
    """
    saved = finding.params.get("saved_bytes")
    certain = -finding.confidence if finding.gain.high <= 0 and finding.confidence >= 1 else 0.0
    return (
        not finding.params.get("stopped"),
        -finding.gain.high,
        -finding.cost_ns_per_step,
        certain,
        -saved if isinstance(saved, int) else 0,
        finding.rule,
    )


def _speaks_of_steps(one: Rule) -> bool:
    """Return whether a rule states shares of the step."""
    return any(kind is StepLedger for kind, _ in one.needs.values())


def _checked(one: Rule, ranks: Sequence[Measured], numbers: Sequence[int], step_ns: int) -> list[Finding] | NotAssessed:
    """Return what a rule says; one that breaks is named as not assessed and costs nobody the rest."""
    try:
        return one.check(ranks, numbers, step_ns)
    except Exception:
        if strict():
            raise
        return NotAssessed(one.id, ("fault",))
