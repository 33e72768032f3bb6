"""warm-up-included: the recording holds steps or calls that only happen once."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.warm_up import WarmUp
from uncork.rules.rule import rule

FIRST_RATIO = 2.0
"""A first step twice as long as the median of the others holds what later steps do not."""
FIRST_USE_SHARE = 0.05
"""Share of the recording in first-use calls that is worth a word."""


@rule()
def warm_up_included(warm_ups: Ranks[WarmUp]) -> Cost | None:
    """Return the observation, which costs nothing: uncork leaves first uses out of the step time."""
    place = max(range(len(warm_ups)), key=lambda one: (warm_ups[one].ratio or 0.0, warm_ups[one].first_use_share))
    one = warm_ups[place]
    if (one.ratio or 0.0) < FIRST_RATIO and one.first_use_share < FIRST_USE_SHARE:
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.9,
        location=Location(rank=warm_ups.numbers[place] if len(warm_ups) > 1 else None),
        evidence=(
            *([] if one.ratio is None else [Evidence("first_step_ratio", one.ratio, "ratio", FIRST_RATIO)]),
            Evidence("first_use_share", one.first_use_share, "share", FIRST_USE_SHARE),
        ),
        advice=("schedule",) if one.by_recorder else (),
        params={
            "first_use_share": one.first_use_share,
            "first_ns": one.first_ns,
            "others_ns": "@unknown.too_few_steps" if one.others_ns is None else one.others_ns,
        },
    )
