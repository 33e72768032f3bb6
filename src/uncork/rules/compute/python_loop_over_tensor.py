"""python-loop-over-tensor: a Python loop takes a tensor apart, element by element or row by row."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.loops import Loops
from uncork.measure.step_ledger import StepLedger
from uncork.rules.pace import LEAST_MODEL_CALLS, least_takes, loop_ns
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

WON_SHARES = (0.5, 0.95)
"""One operator over the whole tensor costs what one of the many does, where it is no larger than a launch."""


@rule()
def python_loop_over_tensor(loops: Ranks[Loops], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the host time of the operators around a loop over a tensor, as far as nothing else hides it."""
    if not any(one.known_place or one.takes < LEAST_MODEL_CALLS for one in loops):
        raise MissingEvidence("stacks")
    cost = charge(ledgers, [loop_ns(one, ledger) for one, ledger in zip(loops, ledgers, strict=True)])
    loop, ledger = loops[cost.place], ledgers[cost.place]
    if not cost.notable or loop.largest is None:
        return None
    ops = loop.ops + loop.model_ops
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share * WON_SHARES[0], cost.share * WON_SHARES[1]),
        confidence=sure(ledger, 0.75),
        location=loop.largest.location(cost.rank),
        evidence=(
            Evidence("loop_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("takes_per_step", loop.takes, "count", least_takes(loop)),
            Evidence("ops_at_place", ops, "count"),
        ),
        params={"takes": loop.takes, "ops": ops, "where": loop.largest.where, "op": loop.largest.name},
    )
