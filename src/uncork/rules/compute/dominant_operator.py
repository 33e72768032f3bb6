"""dominant-operator: a few operators that compute take most of the step."""

from collections.abc import Iterator

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.dominant import Dominant, Heavy
from uncork.measure.inference import Inference
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.measure.threads import Threads
from uncork.rules.heavy import DRAWS, on_device, on_host
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.2
"""The largest operator must take a fifth of the step; TraceLens keeps groups from half a percent on, as a list."""
NEXT_SHARE = 0.1
"""Others are named beside it from a tenth of the step on."""
FEW_SHARE = 0.35
"""Or the largest three together a third: forward and both gradients of the same layers are three operators."""
FEW_OPERATORS_SHARE = 0.7
BUSY_SHARE = 0.85
"""The article's signs of a compute-bound job: few operators over 70 %, utilisation over 85 % (requirement R3.1)."""


@rule()
def dominant_operator(
    dominants: Ranks[Dominant], ledgers: Ranks[StepLedger], machines: Ranks[Machine], threads: Ranks[Threads] | None,
    inferences: Ranks[Inference] | None,
) -> Iterator[Cost]:  # fmt: skip
    """Yield the operators that dominate, at most three, on the rank where they take most."""
    cost = charge(ledgers, [sum(heavy.ns for heavy in dominant.heaviest) for dominant in dominants])
    dominant, ledger, machine = dominants[cost.place], ledgers[cost.place], machines[cost.place]
    spare = threads[cost.place] if threads else None
    step_ns = ledger.mean_step_ns
    if not step_ns or not dominant.heaviest:
        return
    together = min(sum(heavy.ns for heavy in dominant.heaviest) / step_ns, 1.0)
    if dominant.heaviest[0].ns < LEAST_SHARE * step_ns and together < FEW_SHARE:
        return
    names = [heavy.operator.name for heavy in dominant.heaviest]
    for heavy in dominant.heaviest:
        share = min(heavy.ns / step_ns, 1.0)
        if share < NEXT_SHARE:
            return
        if inferences and inferences[cost.place].drops_out and DRAWS.match(heavy.operator.name):
            continue  # training-mode-in-inference has the whole of it
        operator = heavy.operator
        advice = on_device(heavy) if dominant.on_device else on_host(heavy, spare, machine)
        evidence = [
            Evidence("top_operators_share", together, "share", FEW_OPERATORS_SHARE),
            Evidence("operator_share", share, "share", NEXT_SHARE),
            Evidence("busy_share", ledger.busy_share, "share", BUSY_SHARE),
        ]
        if operator.roofline_share is not None and not operator.over_peak:
            evidence.append(Evidence("roofline_share", operator.roofline_share, "share"))
        yield Cost(
            ns_per_step=min(heavy.ns, step_ns),
            gain=Gain(0.0, share) if advice == ("kernel",) else _gain(heavy, share),  # it may not be needed at all
            confidence=sure(ledger, 0.9),
            location=operator.location(cost.rank),
            evidence=tuple(evidence),
            advice=advice,
            params={
                "op": operator.name, "where": operator.where, "sizes": operator.sizes_text,
                "which": f"@which.{operator.phase}" * (names.count(operator.name) > 1),
                "calls": operator.calls_per_step, "instructions": ", ".join(machine.host_bf16 or ()),
                "precision": operator.precision or operator.dtype or "@unknown.not_recorded",
            },
        )  # fmt: skip


def _gain(heavy: Heavy, share: float) -> Gain:
    """Return what a better kernel could give back: the head-room under the roofline; half of it all where unknown."""
    reached = heavy.operator.roofline_share
    if reached is None or heavy.operator.over_peak:
        return Gain(0.0, share / 2)
    room = share * max(0.0, 1.0 - reached)
    return Gain(room / 2, max(room, share / 4))
