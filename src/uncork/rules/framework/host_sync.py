"""host-sync: the program stops until the device is done, and the device then waits for new work."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.host_pieces import where
from uncork.measure.step_ledger import StepLedger
from uncork.measure.syncs import Syncs
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

_READS = (
    "aten::item",
    "aten::_local_scalar_dense",
    "aten::is_nonzero",
    "aten::equal",
    "aten::allclose",
    "aten::to",
    "aten::_to_copy",
    "aten::copy_",
)
_SHAPES = ("aten::nonzero", "aten::masked_select", "aten::index", "aten::unique", "aten::_unique2", "aten::bincount")


@rule()
def host_sync(syncs: Ranks[Syncs], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time the device idles because of waits for it; a wait that causes no idleness is not reported."""
    values = [
        min(sync.total("idle_ns"), ledger.mean_ns("sync", "dispatch", "py_short", "py_stack", "copy_host"))
        for sync, ledger in zip(syncs, ledgers, strict=True)
    ]
    cost = charge(ledgers, values)
    if not cost.notable:
        return None
    sync = syncs[cost.place]
    site = sync.sites[0]
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 4, cost.share),
        confidence=sure(ledgers[cost.place], 0.8),
        location=replace(site.location, rank=cost.rank),
        evidence=(
            Evidence("sync_idle_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("syncs_per_step", sum(one.calls for one in sync.sites), "count"),
            Evidence("sync_wait", sync.total("wait_ns"), "ns"),
        ),
        advice=_advice(site.op),
        params={
            "op": site.op,
            "calls": max(round(site.calls), 1),
            "idle_ns": site.idle_ns,
            "where": place if (place := where(site.location)) != site.op else "@unknown.place",
        },
    )


def _advice(op: str) -> tuple[str, ...]:
    """Return the ids of the advice for what asks for the wait."""
    if op.startswith(_SHAPES):
        return ("fixed-shapes", "read-later")
    if op.startswith(_READS):
        return ("read-later", "read-rarely")
    return ("remove", "read-later")
