"""Convolutions: their time, the layout conversions around them, and how cuDNN or MIOpen was told to choose kernels."""

from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.kernels_table import KernelTable
from uncork.measure.operator import Operator
from uncork.measure.operator_groups import group_operators
from uncork.measure.operators import OperatorTable, operator_parts
from uncork.records import dataclass

_BENCHMARK_AT = {"aten::_convolution": 9, "aten::cudnn_convolution": 6, "aten::miopen_convolution": 7}
"""Place of the benchmark flag among the inputs (native_functions.yaml)."""


@dataclass(frozen=True)
class Convolutions(Measurement):
    """Convolutions on a device; times are means per step.

    Args:
        conv_ns: Time of convolution operators (without host operators: of convolution kernels), conversions included.
        layout_ns: Time of kernels that turn NCHW into NHWC and back.
        layout_kernel: The longest of those, or empty.
        benchmark: Whether kernels are chosen by trying them (``cudnn.benchmark``); None where not recorded.
        channels_last: Whether the largest convolution's input lies channels last; None where strides are not recorded.
        shapes: Distinct shapes of forward convolutions in all steps; 0 where not recorded.
        calls: Forward convolutions in all steps.
        steps: Number of steps.
        largest: The operator that takes most time, None where the host is not recorded.
        step_ns: Mean duration of a step.
    """

    conv_ns: int
    layout_ns: int
    layout_kernel: str
    benchmark: bool | None
    channels_last: bool | None
    shapes: int
    calls: int
    steps: int
    largest: Operator | None
    step_ns: int

    @classmethod
    def of(cls, rank: Rank) -> "Convolutions":
        """Return the convolutions of a rank; without device work there are none to look at."""
        kernels = rank.made(KernelTable)
        try:
            operators = [part for part in operator_parts(rank) if "conv" in part.name.lower()]
            table: OperatorTable | None = rank.made(OperatorTable)
        except MissingEvidence:
            operators, table = [], None
        by_operator = sum(part.device_self_ns for part in operators)
        by_kernel = kernels.class_ns.get("conv", 0) + kernels.class_ns.get("layout", 0)
        forward = [part for part in operators if part.name in _BENCHMARK_AT and part.phase != "backward"]
        largest = max(operators, key=lambda part: part.device_self_ns, default=None)
        benchmark, channels_last = _choices(rank)
        return cls(
            conv_ns=by_operator or by_kernel,
            layout_ns=kernels.class_ns.get("layout", 0),
            layout_kernel=kernels.top("layout"),
            benchmark=benchmark,
            channels_last=channels_last,
            shapes=len({part.shapes for part in forward if part.shapes}),
            calls=sum(part.calls for part in forward),
            steps=table.steps if table else 1,
            largest=largest,
            step_ns=kernels.step_ns,
        )

    def share(self, ns: int) -> float:
        """Return the share of the step that some time is."""
        return min(ns / self.step_ns, 1.0) if self.step_ns else 0.0


def _choices(rank: Rank) -> tuple[bool | None, bool | None]:
    """Return (cudnn.benchmark, channels last): the flag from the program or the trace, the layout from strides."""
    settings = rank.recording.run.settings if rank.recording.run else {}
    said = settings.get("cudnn_benchmark")
    benchmark = said if isinstance(said, bool) else None
    channels_last, most = None, -1
    groups = group_operators(rank.deep_calltree)
    for group, name in enumerate(groups.names):
        if name in _BENCHMARK_AT:
            inputs = groups.argument(group, "Concrete Inputs")
            place = _BENCHMARK_AT[name]
            if benchmark is None and isinstance(inputs, list) and len(inputs) > place and inputs[place]:
                benchmark = str(inputs[place]) == "True"
            strides = groups.argument(group, "Input Strides")
            if isinstance(strides, list) and strides and int(groups.device_total_ns[group]) > most:
                most, channels_last = int(groups.device_total_ns[group]), _lies_channels_last(strides[0])
    return benchmark, channels_last


def _lies_channels_last(strides: object) -> bool | None:
    """Return whether neighbouring channels are neighbours in memory."""
    if not isinstance(strides, list) or len(strides) < 4 or not all(isinstance(one, int) for one in strides):
        return None
    return bool(strides[1] == 1 and strides[-1] != 1)
