"""recompilation: torch.compile compiles again what it had compiled before, inside the steps."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure


@rule()
def recompilation(compiled: Ranks[Compiled], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return the time that compiling takes in the steps, where some of it is not a first time (or cannot be told)."""
    again = [one.recompilations > 0 or one.compilations == 0 for one in compiled]
    cost = charge(
        ledgers, [ledger.mean_ns("compile") if twice else 0 for ledger, twice in zip(ledgers, again, strict=True)]
    )
    if not cost.notable:
        return None
    one = compiled[cost.place]
    # What was compiled for the first time has to be compiled once; where names do not tell, all of it may be again.
    avoidable = cost.share * (one.recompilations / one.compilations if one.compilations else 1.0)
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(avoidable / 2 if one.recompilations else 0.0, avoidable),
        confidence=sure(ledgers[cost.place], 0.95 if one.recompilations else 0.7),
        location=Location(rank=cost.rank, op="torch.compile"),
        evidence=(
            Evidence("compile_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("recompilations", one.recompilations, "count", 0),
        ),
        params={"compile_ns": cost.ns, "recompilations": one.recompilations, "compilations": one.compilations},
    )
