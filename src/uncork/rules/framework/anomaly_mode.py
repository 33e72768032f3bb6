"""anomaly-mode: autograd checks every gradient for NaN."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.anomaly_checks import AnomalyChecks
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import charge, sure


@rule()
def anomaly_mode(checks: Ranks[AnomalyChecks], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return what the checks cost; that they are on is worth saying at any cost."""
    if not any(one.checks >= 1 or one.on for one in checks):
        return None
    cost = charge(ledgers, [one.cost_ns for one in checks])
    one = checks[cost.place]
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(cost.share / 2, cost.share),
        confidence=sure(ledgers[cost.place], 0.95),
        location=Location(rank=cost.rank, op="torch.autograd.set_detect_anomaly"),
        evidence=(
            Evidence("anomaly_checks", one.checks, "count", 0),
            Evidence("anomaly_share", cost.share, "share"),
        ),
        params={"checks": round(one.checks)},
    )
