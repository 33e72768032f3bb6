"""model-left-on-cpu: a machine with a device computes on its processor."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.idle_device import LEAST_FLOP, IdleDevice
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure

LEAST_SHARE = 0.3
"""Less computing than this is a program that prepares data, not one that runs a network."""
WON_SHARES = (0.5, 0.95)
REACHED_SHARE = 0.2
"""What a device reaches of its roofline at least on such work; with it, copies and launches included."""


@rule()
def model_left_on_cpu(devices: Ranks[IdleDevice], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time of operators that compute on the host beside an idle device."""
    idle = [bool(one.device) and not one.used and (one.flop >= LEAST_FLOP or not one.flop) for one in devices]
    cost = charge(ledgers, [one.compute_ns if alone else 0 for one, alone in zip(devices, idle, strict=True)])
    device, ledger = devices[cost.place], ledgers[cost.place]
    if cost.share < LEAST_SHARE or device.largest is None:
        return None
    high = WON_SHARES[1] * cost.share
    if device.device_ns is not None and ledger.mean_step_ns:
        high = max(cost.share - device.device_ns / REACHED_SHARE / ledger.mean_step_ns, 0.0)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(min(WON_SHARES[0] * cost.share, high), high),
        confidence=sure(ledger, 0.9),
        location=device.largest.location(cost.rank),
        evidence=(
            Evidence("host_compute_share", cost.share, "share", LEAST_SHARE),
            Evidence("device_launches", 0.0, "count", 0.0, "="),
        ),
        params={"device": device.device, "op": device.largest.name, "where": device.largest.where},
    )
