"""slow-link: large collectives move far fewer bytes per second than the devices' link can."""

import numpy as np

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.hardware import peaks_of
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.collectives import Collectives, bus_factor
from uncork.measure.facts import Facts
from uncork.measure.matching import match
from uncork.measure.step_ledger import StepLedger
from uncork.quantiles import quantile
from uncork.rules.rule import rule

LARGE_BYTES = 16 << 20
"""Smaller messages do not fill a link (nccl-tests: the curve flattens between 16 and 128 MiB)."""
SLOW_SHARE = 0.1
"""Of the link's figure. Sound all-reduces reach 0.6 to 0.9; between machines over 200 Gbit/s it is 0.05 of NVLink, so
the finding names both reasons."""
LEAST_SHARE = 0.05


@rule()
def slow_link(collectives: Ranks[Collectives], ledger: Ranks[StepLedger], facts: Ranks[Facts]) -> Cost | None:
    """Return the exposed time beyond what a link at half its figure would take, by the fastest large collectives."""
    if len(collectives) < 2:
        raise MissingEvidence("ranks")
    known = peaks_of(facts[0].devices)
    if known is None or not known.link_bytes_per_s:
        raise MissingEvidence("device_model")
    found = match(collectives).within_steps()
    large = np.flatnonzero((found.bytes >= LARGE_BYTES) & (found.group_size > 1))
    if not len(large):
        return None
    factor = np.array([bus_factor(found.name[place], int(found.group_size[place])) for place in large])
    rate = found.bytes[large] * factor / np.maximum(found.transfer_ns[large], 1) * 1e9
    best = quantile(rate, 0.9)
    exposed_ns = float(np.minimum(found.transfer_ns[large, None], found.exposed_ns[large]).sum(axis=0).mean())
    step_ns = float(np.mean([one.mean_step_ns for one in ledger]))
    cost_ns = exposed_ns / max(len(ledger[0].step_ns), 1)
    if best > SLOW_SHARE * known.link_bytes_per_s or cost_ns < LEAST_SHARE * step_ns:
        return None
    saved = 1 - best / (0.5 * known.link_bytes_per_s)
    return Cost(
        ns_per_step=round(cost_ns),
        gain=Gain(0.0, saved * cost_ns / step_ns),
        confidence=0.7,
        location=Location(op=found.name[int(large[0])]),
        evidence=(
            Evidence("bus_bandwidth", best, "bytes_per_s", SLOW_SHARE * known.link_bytes_per_s, "<"),
            Evidence("link_bandwidth", known.link_bytes_per_s, "bytes_per_s"),
        ),
        params={"bus_bytes_per_s": best, "link_bytes_per_s": known.link_bytes_per_s, "device": known.name},
    )
