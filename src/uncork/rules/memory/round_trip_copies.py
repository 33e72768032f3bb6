"""round-trip-copies: the same data goes to the device and comes back, or the other way round, within one step."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.copies import Copies
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.02
"""Below this share of the step keeping the data on one side is not worth a change."""


@rule()
def round_trip_copies(copies: Ranks[Copies], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the exposed time of copies of equal size that go both ways within a step."""
    place = max(range(len(copies)), key=lambda one: _cost_ns(copies[one]))
    mine, step_ns = copies[place], ledger[place].mean_step_ns
    cost_ns = _cost_ns(mine)
    if not step_ns or cost_ns < LEAST_SHARE * step_ns:
        return None
    site = next((site for site in mine.sites if site.direction == "DtoH"), mine.sites[0])
    size = mine.returned_bytes // mine.steps
    return Cost(
        ns_per_step=cost_ns,
        # One of the two ways may be needed: the program's input or its result.
        gain=Gain(0.5 * cost_ns / step_ns, cost_ns / step_ns),
        confidence=0.7,
        location=replace(site.location, rank=copies.numbers[place] if len(copies) > 1 else None),
        evidence=(
            Evidence("round_trip_share", cost_ns / step_ns, "share", LEAST_SHARE),
            Evidence("round_trip_bytes", size, "bytes"),
        ),
        params={"size_bytes": size, "op": site.location.op or "a copy"},
    )


def _cost_ns(copies: Copies) -> int:
    """Return the exposed part of the returned copies' time, as far as all copies together are exposed."""
    took_ns = sum(site.copy_ns for site in copies.sites)
    exposed_ns = sum(site.exposed_ns for site in copies.sites)
    return round(copies.returned_ns / copies.steps * exposed_ns / took_ns) if took_ns else 0
