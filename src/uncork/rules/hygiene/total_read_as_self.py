"""total-read-as-self: the operator that leads by total time does not do the work; the one that does is elsewhere."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.facts import Facts
from uncork.measure.total_and_self import TotalAndSelf
from uncork.rules.rule import rule

HOLLOW_SHARE = 0.2
"""An operator that does less than a fifth of its time itself is a wrapper."""
ELSEWHERE_SHARE = 0.5
"""The operator with the most own time must run mostly outside the wrapper: else total time points the right way."""


@rule()
def total_read_as_self(leaders: Ranks[TotalAndSelf], facts: Ranks[Facts]) -> Cost | None:
    """Return the observation, which costs nothing; of `uncork run` nobody reads a table of the profiler's."""
    if any(one.run is not None for one in facts):
        return None
    for place, one in enumerate(leaders):
        hollow = one.total_self_ns < HOLLOW_SHARE * one.total_ns
        if hollow and one.inside_share < ELSEWHERE_SHARE and one.by_self != one.by_total:
            return Cost(
                ns_per_step=0,
                gain=Gain(0.0, 0.0),
                confidence=0.8,
                location=Location(rank=leaders.numbers[place] if len(leaders) > 1 else None, op=one.by_self),
                evidence=(
                    Evidence("own_share_of_total", one.total_self_ns / one.total_ns, "share", HOLLOW_SHARE, "<"),
                    Evidence("leader_inside_share", one.inside_share, "share", ELSEWHERE_SHARE, "<"),
                ),
                params={
                    "by_total": one.by_total,
                    "total_ns": one.total_ns,
                    "total_self_ns": one.total_self_ns,
                    "by_self": one.by_self,
                    "self_ns": one.self_ns,
                },
            )
    return None
