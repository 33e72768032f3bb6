"""Inference: whether the program only runs forward, and what of its work belongs to training alone."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from uncork.calltree import CallTree
from uncork.events import together
from uncork.measure import Measurement, Rank
from uncork.measure.operator import Operator
from uncork.measure.operator_groups import group_operators
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass

MASK = "aten::bernoulli_"
_DROPOUT = frozenset({"aten::native_dropout", MASK, "aten::_fused_dropout", "aten::feature_dropout"})
_CALLS_MASK = frozenset({"aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::feature_dropout_"})
"""Dropout in training calls the mask's operator once each time (ATen/native/Dropout.cpp)."""
_NORM = re.compile(r"^aten::(native|cudnn|miopen)_batch_norm$")
_TRAINING_KERNEL = re.compile(r"bn_fw_tr|batch_norm_collect_statistics|BatchNormFwdTrain|batch_norm_transform_input")
_TRAINING_AT = 5
"""Place of the training flag among a batch norm's inputs."""


@dataclass(frozen=True)
class Inference(Measurement):
    """A program without backward pass and optimizer; times are means per step, of the device where one works.

    Args:
        forward_only: Whether neither a backward pass nor an optimizer was recorded.
        nodes_per_step: Nodes of a graph for a backward pass that operators record.
        never_trains: Whether the live program has a model whose parameters want gradients, but no gradient and no
            optimizer; None where nothing says.
        dropout_ns: Time in dropout.
        norm_ns: Time in batch norms that compute statistics of the batch.
        largest: The operator of them that takes most time, None without any.
        forward: The forward operator that takes most time, None without any.
        step_ns: Mean duration of a step.
        training: What the live model said of itself; None where nothing says.
    """

    forward_only: bool
    nodes_per_step: int
    never_trains: bool | None
    dropout_ns: int
    norm_ns: int
    largest: Operator | None
    forward: Operator | None
    step_ns: int
    training: bool | None

    @property
    def builds_graph(self) -> bool:
        """Return whether operators still record a graph for a backward pass."""
        return self.nodes_per_step > 0

    @property
    def drops_out(self) -> bool:
        """Return whether dropout is computed though nothing is trained."""
        return self.forward_only and self.training is not False and self.dropout_ns > 0

    @classmethod
    def of(cls, rank: Rank) -> "Inference":
        """Return what of a rank's work belongs to training."""
        table = rank.made(OperatorTable)
        parts = operator_parts(rank)
        masks = drops_masks(parts)
        dropout = [part for part in parts if part.name in _DROPOUT and (masks or part.name != MASK)]
        flags = _training_flags(rank)
        norms = [
            part
            for part in parts
            if _NORM.match(part.name) and (flags.get(part.name, False) or _TRAINING_KERNEL.search(part.kernel))
        ]
        settings = rank.recording.run.settings if rank.recording.run else {}
        said = settings.get("training")
        return cls(
            forward_only=not any(part.phase in {"backward", "recompute", "optimizer"} for part in parts),
            nodes_per_step=round(_nodes(rank.calltree) / table.steps),
            never_trains=_never_trains(settings),
            dropout_ns=sum(map(table.weight_ns, dropout)),
            norm_ns=sum(map(table.weight_ns, norms)),
            largest=max((*dropout, *norms), key=table.weight_ns, default=None),
            forward=max((part for part in parts if part.phase == "forward"), key=table.weight_ns, default=None),
            step_ns=table.step_ns,
            training=said if isinstance(said, bool) else None,
        )


def drops_masks(parts: Iterable[Operator]) -> bool:
    """Return whether most of the masks that are drawn are dropout's; else the program draws them for itself."""
    calls = Counter[str]()
    for part in parts:
        calls[part.name] += part.calls
    return 2 * sum(calls[name] for name in _CALLS_MASK) > calls[MASK]


def _nodes(tree: CallTree) -> int:
    """Return how many nodes operators add to a graph: each takes a number of its thread's, and others show the next."""
    numbered = tree.is_op & (tree.sequence >= 0)
    track = tree.host.track[numbered]
    first, _ = together(track, tree.sequence[numbered])
    return max(int(np.bincount(track[first]).max(initial=0)) - 1, 0)


def _never_trains(settings: Mapping[str, object]) -> bool | None:
    """Return whether the live objects say that nothing is trained though parameters want gradients."""
    trained, gradients = settings.get("parameters_trained"), settings.get("gradient_bytes")
    if not isinstance(trained, int) or not isinstance(gradients, int):
        return None
    return trained > 0 and gradients == 0 and not settings.get("optimizers")


def _training_flags(rank: Rank) -> dict[str, bool]:
    """Return for each kind of batch norm whether it is told to compute statistics, where inputs are recorded."""
    groups = group_operators(rank.deep_calltree)
    found: dict[str, bool] = {}
    for group, name in enumerate(groups.names):
        if _NORM.match(name):
            inputs = groups.argument(group, "Concrete Inputs")
            if isinstance(inputs, list) and len(inputs) > _TRAINING_AT and inputs[_TRAINING_AT]:
                found[name] = found.get(name, False) or str(inputs[_TRAINING_AT]) == "True"
    return found
