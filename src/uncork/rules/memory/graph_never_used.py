"""graph-never-used: a program that only runs forward records a graph for a backward pass that never comes."""

from dataclasses import replace

from uncork.findings import Cost, Evidence, Gain
from uncork.measure import MissingEvidence, Ranks
from uncork.measure.inference import Inference
from uncork.rules.rule import rule

LEAST_NODES = 10
"""Fewer are no model: a loss that is only reported, a single layer."""


@rule(hidden_by=("grad-mode-in-inference",))
def graph_never_used(inferences: Ranks[Inference]) -> Cost | None:
    """Return head room: what is kept for a backward pass, in a program without gradients and optimizers."""
    number, one = max(zip(inferences.numbers, inferences, strict=True), key=lambda pair: pair[1].nodes_per_step)
    if not one.forward_only or one.nodes_per_step < LEAST_NODES or one.forward is None:
        return None
    # Only steps of a training program may have been recorded that come before its backward pass.
    if one.never_trains is None:
        raise MissingEvidence("settings")
    if not one.never_trains:
        return None
    return Cost(
        ns_per_step=0,
        gain=Gain(0.0, 0.0),
        confidence=0.85,
        location=replace(one.forward.location(number if len(inferences) > 1 else None), op=None),
        evidence=(
            Evidence("graph_nodes", one.nodes_per_step, "count", LEAST_NODES),
            Evidence("backward_ops", 0.0, "count", 0.0, "="),
        ),
        params={"nodes": one.nodes_per_step},
    )
