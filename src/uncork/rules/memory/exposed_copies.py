"""exposed-copies: the device waits for copies that come from pinned memory, so only overlap or fewer bytes help."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.copies import Copies
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.05
"""TraceLens' agent speaks of copies in one direction from 5 % of the time on."""
FEWER_BYTES_SHARE = 0.5
"""Sending half-precision or uint8 instead of fp32 moves at most half as much."""


@rule(hidden_by=("round-trip-copies",))
def exposed_copies(copies: Ranks[Copies], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the exposed time of copies that do not go through pageable memory."""
    place = max(range(len(copies)), key=lambda one: _exposed_ns(copies[one]))
    mine, steps = copies[place], ledger[place]
    cost_ns = _exposed_ns(mine)
    site = next((site for site in mine.sites if site.memory != "pageable"), None)
    if site is None or not steps.mean_step_ns or cost_ns < LEAST_SHARE * steps.mean_step_ns:
        return None
    hidden_ns = min(cost_ns, steps.mean_ns("gemm", "other_kernel", "bandwidth"))
    size = sum(one.bytes for one in mine.sites if one.memory != "pageable") // mine.steps
    return Cost(
        ns_per_step=cost_ns,
        gain=Gain(
            0.25 * hidden_ns / steps.mean_step_ns, max(hidden_ns, FEWER_BYTES_SHARE * cost_ns) / steps.mean_step_ns
        ),
        confidence=0.75,
        location=replace(site.location, rank=copies.numbers[place] if len(copies) > 1 else None),
        evidence=(
            Evidence("exposed_copy_share", cost_ns / steps.mean_step_ns, "share", LEAST_SHARE),
            *((Evidence("copy_bandwidth", site.bytes_per_s, "bytes_per_s"),) if site.bytes_per_s else ()),
        ),
        advice=("prefetch", "fewer-bytes") if site.direction != "DtoH" else ("side-stream", "fewer-bytes"),
        params={"size_bytes": size, "direction": site.direction, "op": site.location.op or "a copy"},
    )


def _exposed_ns(copies: Copies) -> int:
    return copies.total("exposed_ns") - copies.total("exposed_ns", memory="pageable")
