"""optimizer-not-foreach-or-fused: the optimizer updates its parameters one by one."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.machine import Machine
from uncork.measure.optimizer_steps import OptimizerSteps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

FUSED_ON_DEVICE = {"Adam": (2, 0), "AdamW": (2, 0), "SGD": (2, 3), "Adagrad": (2, 4)}
FUSED_ON_CPU = {"Adam": (2, 4), "AdamW": (2, 4), "SGD": (2, 4), "Adagrad": (2, 4)}
"""Optimizers that take ``fused=True``, and since which torch (torch.optim's release notes)."""
MANY_PASSES = frozenset({"Adam", "AdamW"})
"""Optimizers whose operators read or write 18 times the parameters' size, where the fused update needs 7."""
PASSES_WON = (0.5, 0.9)
"""What fusing those passes saves (4 to 8 times as fast: torch 2.13, one core, 1.3 and 2.6 M parameters)."""


@rule()
def optimizer_not_foreach_or_fused(
    steps: Ranks[OptimizerSteps], ledgers: Ranks[StepLedger], machines: Ranks[Machine]
) -> Cost | None:
    """Return the calls' time in the optimizer, and that of its passes over memory, where another one makes fewer."""
    choices = [_choices(one, machine) for one, machine in zip(steps, machines, strict=True)]
    works = [
        one.work_ns if one.name in MANY_PASSES and "fused" in able else 0
        for one, able in zip(steps, choices, strict=True)
    ]
    cost = charge(
        ledgers, [(one.cost_ns + work) * bool(able) for one, work, able in zip(steps, works, choices, strict=True)]
    )
    if not cost.notable:
        return None
    one, ledger = steps[cost.place], ledgers[cost.place]
    passes = cost.share * works[cost.place] / (one.cost_ns + works[cost.place])
    calls = cost.share - passes
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(calls / 4 + passes * PASSES_WON[0], calls * (1 - 1 / max(one.tensors, 2)) + passes * PASSES_WON[1]),
        confidence=sure(ledger, 0.85 if one.kind == "for-loop" else 0.65),
        location=Location(rank=cost.rank, op=f"Optimizer.step#{one.name}"),
        evidence=(
            Evidence("optimizer_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("optimizer_calls_share", calls, "share"),
            Evidence("optimizer_operators", one.ops, "count"),
            Evidence("optimizer_tensors", one.tensors, "count"),
        ),
        advice=choices[cost.place],
        params={"optimizer": one.name, "ops": one.ops, "tensors": one.tensors, "kind": one.kind},
    )


def _choices(one: OptimizerSteps, machine: Machine) -> tuple[str, ...]:
    """Return the advice that helps: what this torch offers for this optimizer on this device, and is not used yet."""
    if one.kind not in ("for-loop", "foreach"):
        return ()
    since = (FUSED_ON_CPU if machine.device == "cpu" else FUSED_ON_DEVICE).get(one.name)
    fused = since is not None and (machine.torch is None or machine.torch >= since)
    # On the CPU lists of tensors are taken apart again: foreach saves nothing there.
    foreach = machine.device != "cpu" and one.kind == "for-loop"
    return (("fused",) if fused else ()) + (("foreach",) if foreach else ())
