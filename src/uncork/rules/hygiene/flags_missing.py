"""flags-missing: the recording was made without shapes, memory or stacks, so some questions stay open."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.facts import Facts
from uncork.measure.recorded_flags import WANTED, RecordedFlags
from uncork.rules.rule import rule


@rule()
def flags_missing(flags: Ranks[RecordedFlags], facts: Ranks[Facts]) -> Cost | None:
    """Return the observation, which costs nothing; what `uncork run` leaves out it had to, and says itself."""
    if any(one.run is not None for one in facts):
        return None
    left_out = sorted({name for one in flags for name in one.left_out}, key=list(WANTED.values()).index)
    if not left_out:
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=1.0,
        evidence=(Evidence("flags_left_out", len(left_out), "count", 0),),
        params={"flags": ", ".join(left_out), "settings": ", ".join(f"{name}=True" for name in left_out)},
    )
