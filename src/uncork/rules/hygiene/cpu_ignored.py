"""cpu-ignored: only the device was recorded, so nothing can be said about the host that drives it."""

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.recorded_sides import RecordedSides
from uncork.rules.rule import rule


@rule()
def cpu_ignored(sides: Ranks[RecordedSides]) -> Cost | None:
    """Return the observation, which costs nothing."""
    blind = [one for one in sides if not one.host]
    if not blind:
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=1.0,
        evidence=(
            Evidence("host_events", 0, "count", 0, "="),
            Evidence("device_idle_share", blind[0].idle_share, "share"),
        ),
        params={"idle_share": blind[0].idle_share},
    )
