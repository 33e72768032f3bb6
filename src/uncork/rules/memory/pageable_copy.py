"""pageable-copy: copies between host and device go through pageable memory, so they are slow and hold up the host."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.copies import Copies
from uncork.measure.step_ledger import StepLedger
from uncork.rules.rule import rule

LEAST_SHARE = 0.02
"""Below this share of the step pinning is not worth a change; TraceLens' agent speaks of copies from 5 % on."""
PINNED_SPEEDUP = 2.0
"""Pinned copies reach up to about twice the bandwidth of pageable ones (M. Harris, "How to Optimize Data Transfers in
CUDA C/C++": 2.3 against 5 to 6 GB/s)."""
SURE_SHARE = 0.25
"""Part of the cost that the missing staging copy alone gives back, where nothing can run beside the copy."""
MANY_SMALL_BYTES = 1 << 20


@rule()
def pageable_copy(copies: Ranks[Copies], ledger: Ranks[StepLedger]) -> Cost | None:
    """Return the exposed time of pageable copies, staging on the host included, on the rank where it is longest."""
    place = max(range(len(copies)), key=lambda one: _cost_ns(copies[one], ledger[one]))
    mine, steps = copies[place], ledger[place]
    cost_ns = _cost_ns(mine, steps)
    if not steps.mean_step_ns or cost_ns < LEAST_SHARE * steps.mean_step_ns:
        return None
    ways = {way: mine.total("copy_ns", direction=way, memory="pageable") for way in ("HtoD", "DtoH")}
    hidden_ns = steps.mean_ns("gemm", "other_kernel", "bandwidth")
    left_ns = min(max(max(ways.values()) / PINNED_SPEEDUP - hidden_ns, 0), cost_ns)
    size, took_ns = mine.total("bytes", memory="pageable"), mine.total("copy_ns", memory="pageable")
    count = mine.total("count", memory="pageable")
    site = next(site for site in mine.sites if site.memory == "pageable")
    advice = ("pin-loader", "pin-buffer") if ways["HtoD"] >= ways["DtoH"] else ("pin-buffer", "pin-loader")
    return Cost(
        ns_per_step=cost_ns,
        gain=Gain(SURE_SHARE * (cost_ns - left_ns) / steps.mean_step_ns, (cost_ns - left_ns) / steps.mean_step_ns),
        confidence=0.9 if size else 0.75,
        location=replace(site.location, rank=copies.numbers[place] if len(copies) > 1 else None),
        evidence=(
            Evidence("pageable_share", cost_ns / steps.mean_step_ns, "share", LEAST_SHARE),
            Evidence("host_blocked", mine.total("host_ns", memory="pageable"), "ns"),
            Evidence("copies_per_step", count, "count"),
            *((Evidence("copy_bandwidth", size / took_ns * 1e9, "bytes_per_s"),) if size and took_ns else ()),
        ),
        advice=(*advice, *(("batch-copies",) if size < count * MANY_SMALL_BYTES else ())),
        params={
            "size_bytes": size,
            "copies": count,
            "blocked_ns": mine.total("host_ns", memory="pageable"),
            "op": site.location.op or "a copy",
        },
    )


def _cost_ns(copies: Copies, ledger: StepLedger) -> int:
    """Return the ledger's time for pageable copies: on the device, and staging over an idle one."""
    on_device = copies.total("exposed_ns", memory="pageable")
    return on_device + ledger.mean_ns("copy_host") if copies.total("copy_ns", memory="pageable") else 0
