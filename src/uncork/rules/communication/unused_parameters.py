"""unused-parameters: DDP walks the whole graph after every forward pass to look for unused parameters."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.step_ledger import StepLedger
from uncork.measure.wrappers import Wrappers
from uncork.rules.rule import rule

LEAST_SHARE = 0.005
"""It is one argument to change, so little is worth it."""


@rule()
def unused_parameters(wrappers: Ranks[Wrappers], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the time of the search in which the device idles, on the rank where it is longest."""
    place = max(range(len(wrappers)), key=lambda one: wrappers[one].search_ns_per_step)
    mine, step_ns = wrappers[place], ledger[place].mean_step_ns
    if not step_ns or mine.search_ns_per_step < LEAST_SHARE * step_ns:
        return None
    cost_ns = mine.exposed_search_ns_per_step
    return Cost(
        ns_per_step=cost_ns,
        gain=Gain(0.5 * cost_ns / step_ns, cost_ns / step_ns),
        confidence=0.85,
        location=Location(op="search_unused_parameters"),
        evidence=(Evidence("search_share", mine.search_ns_per_step / step_ns, "share", LEAST_SHARE),),
        params={"search_ns": mine.search_ns_per_step},
    )
