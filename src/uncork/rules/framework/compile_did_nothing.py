"""compile-did-nothing: compiled regions hold next to nothing, so entering them costs more than they save."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.compiled import Compiled
from uncork.measure.dispatch import Dispatch
from uncork.measure.python_gaps import GAP_CAUSES, PythonGaps
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule
from uncork.rules.worth import NOTABLE_SHARE, charge, sure

FEW_KERNELS = 3.0
"""A region of one or two kernels has nothing to fuse; guards and wrappers cost 20–60 µs of Python per entry."""
MANY_REGIONS = 5
"""A few small regions in a step do not matter."""


@rule()
def compile_did_nothing(
    compiled: Ranks[Compiled], counts: Ranks[Dispatch], ledgers: Ranks[StepLedger], gaps: Ranks[PythonGaps]
) -> Cost | None:
    """Return what the wrappers of compiled regions cost where the regions are tiny."""
    sizes = [
        float(count.launches.mean()) / one.regions if one.regions >= MANY_REGIONS else FEW_KERNELS
        for one, count in zip(compiled, counts, strict=True)
    ]
    values = [
        gap.part_ns("compiler", ledger.mean_ns(*GAP_CAUSES), ledger.mean_step_ns) + one.lookup_ns
        if 0 < size < FEW_KERNELS and ledger.on_device
        else 0.0
        for ledger, gap, one, size in zip(ledgers, gaps, compiled, sizes, strict=True)
    ]
    cost = charge(ledgers, values)
    if not cost.notable:
        return None
    one = compiled[cost.place]
    return Cost(
        ns_per_step=cost.ns,
        gain=Gain(0.0, cost.share),
        confidence=sure(ledgers[cost.place], 0.75),
        location=Location(rank=cost.rank, op="Torch-Compiled Region"),
        evidence=(
            Evidence("wrapper_share", cost.share, "share", NOTABLE_SHARE),
            Evidence("kernels_per_region", sizes[cost.place], "count", FEW_KERNELS, "<"),
            Evidence("compiled_regions", one.regions, "count", MANY_REGIONS),
        ),
        params={"regions": round(one.regions), "kernels": f"{sizes[cost.place]:.1f}"},
    )
