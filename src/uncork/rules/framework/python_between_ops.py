"""python-between-ops: the program's own Python runs while no operator works."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.own_python import OwnPython
from uncork.measure.step_ledger import StepLedger
from uncork.rules.pace import python_ns
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure


@rule()
def python_between_ops(python: Ranks[OwnPython], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of Python that is there for nothing else that has a rule, nor for calling the next operator."""
    gaps = [one.gaps for one in python]
    values = [
        python_ns(ledger, own.gaps) if own.framed else ledger.mean_ns("py_stack")
        for ledger, own in zip(ledgers, python, strict=True)
    ]
    cost = charge(ledgers, values)
    top = gaps[cost.place].top("")
    if not cost.notable or top is None:
        return None
    whole = gaps[cost.place].share("")
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.8),
        location=replace(top.location, rank=cost.rank),
        evidence=(
            Evidence("python_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("python_function_share", top.share / whole if whole else 0.0, "share"),
        ),
        advice=("less",) if top.of_library else ("move", "tensor"),
        params={"where": where(top.location) or "Python", "where_share": top.share / whole if whole else 0.0},
    )
