"""grad-mode-in-inference: a forward-only run keeps what only a backward pass would need."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import Ranks
from uncork.measure.snapshot_memory import PEAK_SHARE, SnapshotMemory
from uncork.rules.headroom import best_saving, worth_of
from uncork.rules.rule import rule

LEAST_BYTES = 256 << 20
"""Less is not worth a change."""
LEAST_PLACES = 3
"""Autograd keeps something of nearly every line of a layer; a cache of keys and values is held by one or two."""


@rule()
def grad_mode_in_inference(memory: Ranks[SnapshotMemory]) -> Cost | None:
    """Return head room: activations that were held and then dropped without any backward pass or optimiser step."""
    number, mine = max(zip(memory.numbers, memory, strict=True), key=lambda pair: pair[1].dropped_bytes)
    mine.require_history()
    grown = mine.peak_bytes - mine.start_bytes - mine.built_bytes
    places = [one for one in mine.peak_owners if one.category == "activation"]
    if len(places) < LEAST_PLACES:
        return None
    if {"backward", "optimizer"} & set(mine.phases) or mine.dropped_bytes < max(LEAST_BYTES, PEAK_SHARE * grown):
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.8,
        location=replace(places[0].location, rank=number if len(memory) > 1 else None),
        evidence=(
            Evidence("dropped_activation_share", mine.dropped_bytes / max(grown, 1), "share", PEAK_SHARE),
            Evidence("dropped_activation_bytes", mine.dropped_bytes, "bytes", LEAST_BYTES),
        ),
        params={
            "dropped_bytes": mine.dropped_bytes,
            "peak_bytes": mine.peak_bytes,
            **worth_of(mine, best_saving(mine, "inference_mode")),
        },
    )
