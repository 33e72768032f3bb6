"""host-memory-growth: the program's memory on the host grows steadily; at some time the system ends it."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.host_memory import HostMemory
from uncork.rules.rule import rule

LEAST_BYTES = 64 << 20
"""Less is within what allocators and caches take now and then."""
LEAST_SHARE = 0.05
"""Of what the process had at the start of the settled part."""
STEADY = 0.8
"""R² of a line through the samples: a leak grows evenly, a cache by jumps."""


@rule()
def host_memory_growth(memory: Ranks[HostMemory]) -> Cost | None:
    """Return head room: the growth on the rank where it is largest, and how long the host's memory lasts."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: pair[1].growth_bytes)
    least = max(LEAST_BYTES, LEAST_SHARE * mine.start_bytes)
    if mine.growth_bytes < least or mine.steadiness < STEADY or not mine.span_ns:
        return None
    own = mine.series.startswith("process")
    per_s = mine.growth_bytes / mine.span_ns * 1e9
    left = (mine.capacity_bytes or 0) - mine.start_bytes
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.7,
        location=Location(rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("host_growth_bytes", mine.growth_bytes, "bytes", least),
            Evidence("host_growth_bytes_per_s", per_s, "bytes_per_s"),
        ),
        advice=("let-go", "find") if own else ("workers", "let-go", "find"),
        params={
            "growth_bytes": mine.growth_bytes,
            "span_ns": mine.span_ns,
            "series": mine.series,
            "lasts_ns": left / per_s * 1e9 if mine.capacity_bytes else "?",
        },
    )
