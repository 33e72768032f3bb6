"""old-torch: the framework's overhead matters, and a newer PyTorch has less of it."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.step_ledger import StepLedger
from uncork.measure.torch_version import TorchVersion
from uncork.rules.pace import COMPILES_FROM, pace_ns
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge

OLD = COMPILES_FROM
"""Before 2.0 there is no compiler, no fused attention in core, and optimizers loop over parameters by default."""
WON_SHARE = 0.5
"""Upper bound without a second run: foreach optimizers and leaner dispatch halve the calls at best."""


@rule()
def old_torch(versions: Ranks[TorchVersion], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the head-room of an upgrade where the host's pace costs the step."""
    old = [(one.major, one.minor) < OLD for one in versions]
    cost = charge(ledgers, [pace_ns(ledger) if aged else 0 for ledger, aged in zip(ledgers, old, strict=True)])
    if not cost.notable:
        return None
    one = versions[cost.place]
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, cost.share * WON_SHARE),
        confidence=0.6,
        location=Location(rank=cost.rank),
        evidence=(Evidence("overhead_share", cost.share, "share", NOTABLE_SHARE),),
        params={"version": f"{one.major}.{one.minor}", "overhead_share": cost.share},
    )
