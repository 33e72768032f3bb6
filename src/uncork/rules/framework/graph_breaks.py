"""graph-breaks: compiled code is left and entered again within a step."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.host_pieces import where
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure


@rule()
def graph_breaks(compiled: Ranks[Compiled], ledgers: Ranks[StepLedger]) -> Cost | None:
    """Return what the host takes between compiled regions that belong to different pieces of code."""
    broken = [bool(one.breaks) or one.frames > 1 for one in compiled]
    cost = charge(ledgers, [one.between_ns if cut else 0 for one, cut in zip(compiled, broken, strict=True)])
    if not cost.notable:
        return None
    one = compiled[cost.place]
    place = one.breaks[0] if one.breaks else Location(op="Torch-Compiled Region")
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.85 if one.breaks else 0.6),
        location=replace(place, rank=cost.rank),
        evidence=(
            Evidence("between_regions_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("compiled_regions", one.regions, "count", 1),
            Evidence("graph_breaks", max(len(one.breaks), one.frames - 1), "count", 0),
        ),
        params={"regions": round(one.regions), "where": where(place)},
    )
