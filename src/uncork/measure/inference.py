"""Inference: whether the program only runs forward, and what of its work belongs to training alone."""

import re

from uncork.measure import Measurement, Rank
from uncork.measure.operator import Operator
from uncork.measure.operator_groups import group_operators
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass

_DROPOUT = frozenset({"aten::native_dropout", "aten::bernoulli_", "aten::_fused_dropout", "aten::feature_dropout"})
_NORM = re.compile(r"^aten::(native|cudnn|miopen)_batch_norm$")
_TRAINING_KERNEL = re.compile(r"bn_fw_tr|batch_norm_collect_statistics|BatchNormFwdTrain|batch_norm_transform_input")
_TRAINING_AT = 5
"""Place of the training flag among a batch norm's inputs."""


@dataclass(frozen=True)
class Inference(Measurement):
    """A program without backward pass and optimizer; times are means per step, of the device where one works.

    Args:
        forward_only: Whether neither a backward pass nor an optimizer was recorded.
        builds_graph: Whether operators still record a graph for a backward pass.
        dropout_ns: Time in dropout.
        norm_ns: Time in batch norms that compute statistics of the batch.
        largest: The operator of them that takes most time, None without any.
        step_ns: Mean duration of a step.
        training: What the live model said of itself; None where nothing says.
    """

    forward_only: bool
    builds_graph: bool
    dropout_ns: int
    norm_ns: int
    largest: Operator | None
    step_ns: int
    training: bool | None

    @property
    def drops_out(self) -> bool:
        """Return whether dropout is computed though nothing is trained."""
        return self.forward_only and self.training is not False and self.dropout_ns > 0

    @classmethod
    def of(cls, rank: Rank) -> "Inference":
        """Return what of a rank's work belongs to training."""
        table = rank.made(OperatorTable)
        parts = operator_parts(rank)
        dropout = [part for part in parts if part.name in _DROPOUT]
        flags = _training_flags(rank)
        norms = [
            part
            for part in parts
            if _NORM.match(part.name) and (flags.get(part.name, False) or _TRAINING_KERNEL.search(part.kernel))
        ]
        tree = rank.calltree
        settings = rank.recording.run.settings if rank.recording.run else {}
        said = settings.get("training")
        return cls(
            forward_only=not any(part.phase in {"backward", "recompute", "optimizer"} for part in parts),
            builds_graph=bool((tree.sequence[tree.is_op] >= 0).any()),
            dropout_ns=sum(map(table.weight_ns, dropout)),
            norm_ns=sum(map(table.weight_ns, norms)),
            largest=max((*dropout, *norms), key=table.weight_ns, default=None),
            step_ns=table.step_ns,
            training=said if isinstance(said, bool) else None,
        )


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
