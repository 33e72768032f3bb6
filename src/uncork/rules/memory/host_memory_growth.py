"""host-memory-growth: the program's memory on the host grows steadily; at some time the system ends it."""

from uncork.findings import Cost, Evidence, Gain, Location
from uncork.measure import Ranks
from uncork.measure.host_memory import HostMemory
from uncork.rules.rule import rule

LEAST_BYTES = 64 << 20
"""Less is within what allocators and caches take now and then."""
LEAST_SHARE = 0.05
"""Of what the process had at the start of the settled part."""
EACH_HALF_SHARE = 0.25
"""A leak goes on: either half of the time has half of what stays (a cache that fills up has most of it in the first; a
loop whose pace changes threefold has a quarter in one)."""
ONE_PART_SHARE = 0.6
"""Between two fifths of the time lies a quarter of an even growth, of two large steps a half; one jump has it all."""


@rule()
def host_memory_growth(memory: Ranks[HostMemory]) -> Cost | None:
    """Return head room: the growth on the rank where it is largest, and how long the host's memory lasts."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: pair[1].growth_bytes)
    least = max(LEAST_BYTES, LEAST_SHARE * mine.start_bytes)
    steady = mine.half_share >= EACH_HALF_SHARE and mine.part_share <= ONE_PART_SHARE
    if mine.growth_bytes < least or not steady or not mine.span_ns:
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
