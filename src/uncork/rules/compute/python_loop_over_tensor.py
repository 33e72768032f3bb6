"""python-loop-over-tensor: a Python loop takes a tensor apart, element by element or row by row."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.loops import Loops
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

LEAST_TAKES = 50
"""PyTorch's own pattern matcher speaks of a loop from 10 repetitions on; going through some heads or layers is fine."""
LEAST_MODEL_CALLS = 10
"""… but not calling the model for each piece: then its repetitions are enough."""
MOST_OPS_PER_TAKE = 30
"""With more operators around each, the place is a whole program and not a loop."""
_EXPOSED = ("dispatch", "sync", "py_short", "py_stack")
WON_SHARES = (0.5, 0.95)
"""One operator over the whole tensor costs what one of the many does, where it is no larger than a launch."""


@rule()
def python_loop_over_tensor(loops: Ranks[Loops], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the host time of the operators around a loop over a tensor, as far as nothing else hides it."""
    if not any(one.known_place or one.takes < LEAST_MODEL_CALLS for one in loops):
        raise MissingEvidence("stacks")
    values = []
    for one, ledger in zip(loops, ledgers, strict=True):
        exposed_ns = ledger.mean_ns(*_EXPOSED) if ledger.on_device else ledger.mean_step_ns
        is_loop = one.known_place and one.takes >= max(_least(one), one.ops / MOST_OPS_PER_TAKE)
        # What calling costs goes with the calls: the time of functions of autograd's, and the short gaps between.
        calling_ns = max(one.host_ns, ledger.mean_ns("tiny", "dispatch") * one.ops_share)
        between_ns = ledger.mean_ns("py_short") * one.ops_share
        values.append(min(calling_ns + between_ns, exposed_ns) if is_loop else 0)
    cost = charge(ledgers, values)
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
            Evidence("takes_per_step", loop.takes, "count", _least(loop)),
            Evidence("ops_at_place", ops, "count"),
        ),
        params={"takes": loop.takes, "ops": ops, "where": loop.largest.where, "op": loop.largest.name},
    )


def _least(loop: Loops) -> int:
    return LEAST_MODEL_CALLS if loop.model_ops else LEAST_TAKES
