"""launch-bound: the device waits because the host launches its kernels too slowly."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.dispatch import Dispatch
from uncork.measure.host_pieces import where
from uncork.measure.machine import Machine
from uncork.measure.step_ledger import StepLedger
from uncork.measure.syncs import Syncs
from uncork.rules.pace import pace_advice, pace_ns
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

SHORT_KERNEL_NS = 25_000
"""Mean kernel below which a job is launch-bound, fitted on measured runs by gpu-idle (50 µs gave a false alarm)."""
WELL_USED_SHARE = 0.85
"""The article's sign of a device that is used well (requirement R3.1)."""
WON_SHARE = 0.9
"""A graph of the whole step leaves one launch; a tenth remains for what cannot be captured."""


@rule()
def launch_bound(
    counts: Ranks[Dispatch],
    ledgers: Ranks[StepLedger],
    machines: Ranks[Machine],
    compiled: Ranks[Compiled],
    syncs: Ranks[Syncs] | None,
) -> Cost | None:
    """Return the time the device idles while the host dispatches, without what waits for the device cause."""
    after_waits = [sync.total("refill_ns") for sync in syncs] if syncs else [0] * len(ledgers)
    values = [
        max(pace_ns(ledger) - refill, pace_ns(ledger) // 2) if ledger.on_device else 0
        for ledger, refill in zip(ledgers, after_waits, strict=True)
    ]
    cost = charge(ledgers, values)
    if not cost.notable:
        return None
    ledger, count, machine = ledgers[cost.place], counts[cost.place], machines[cost.place]
    short = 0 < count.kernel_ns <= SHORT_KERNEL_NS
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 4, cost.share * WON_SHARE),
        confidence=sure(ledger, 0.9 if short else 0.75),
        location=replace(count.location, rank=cost.rank, op=count.location.op or count.leader.name),
        evidence=(
            Evidence("dispatch_idle_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("device_busy_share", ledger.busy_share, "share", WELL_USED_SHARE, "<"),
            Evidence("kernel_mean", count.kernel_ns, "ns", SHORT_KERNEL_NS, "<"),
            Evidence("launches_per_step", float(count.launches.mean()), "count"),
            Evidence("operators_per_step", float(count.ops.mean()), "count"),
        ),
        advice=pace_advice(machine, compiled=compiled[cost.place].used, turns=count.turns),
        params={
            "launches": round(float(count.launches.mean())),
            "kernel_ns": count.kernel_ns,
            "ops": round(float(count.ops.mean())),
            "where": where(count.location) or count.leader.name,
        },
    )
