"""naive-kernel: matrix work runs in a kernel far under what the device can do."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.slow_kernels import FAR_UNDER_SHARE, SlowKernels
from uncork.measure.step_ledger import StepLedger
from uncork.rules.kernel_names import short
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

REACHED_SHARES = (0.2, 0.5)
"""What a usual kernel reaches of the roofline at least; the gain is taken against these, halved at the low end: for
some sizes no better kernel exists."""


@rule()
def naive_kernel(slows: Ranks[SlowKernels], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of the slowest such work."""
    if not any(one.judged for one in slows):
        raise MissingEvidence("shapes")
    cost = charge(ledgers, [sum(slow.ns for slow in one.found) for one in slows])
    slow, ledger = slows[cost.place], ledgers[cost.place]
    if not cost.notable or not slow.found:
        return None
    first = slow.found[0]
    operator, reached = first.operator, first.operator.roofline_share
    now = FAR_UNDER_SHARE if reached is None else reached
    evidence = [Evidence("slow_kernel_share", cost.share, "share", NOTABLE_SHARE)]
    if reached is not None:
        evidence.append(Evidence("roofline_share", reached, "share", FAR_UNDER_SHARE, "<"))
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(
            cost.share * max(0.0, 1 - now / REACHED_SHARES[0]) / 2, cost.share * max(0.0, 1 - now / REACHED_SHARES[1])
        ),
        confidence=sure(ledger, 0.9 if first.naive else 0.75),
        location=operator.location(cost.rank),
        evidence=tuple(evidence),
        advice=("retune", "sizes", "fewer-bits") if first.naive else ("sizes", "retune", "fewer-bits"),
        params={
            "op": operator.name, "kernel": short(operator.kernel or operator.name), "where": operator.where,
            "sizes": operator.sizes_text,
        },
    )  # fmt: skip
