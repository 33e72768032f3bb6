"""KernelTable: what the device's time goes to, by kernel, by class of kernel, and by precision."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from uncork.events import Kind
from uncork.intervals import contains
from uncork.kernels import CLASSES
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass
from uncork.tensorcores import is_misaligned, matrix_precision

IntArray = npt.NDArray[np.int64]
MOST_KERNELS = 100
Figures = Mapping[str, npt.NDArray[np.float64]]
_OCCUPANCY, _BLOCKS = "est. achieved occupancy %", "blocks per SM"
MATRIX = ("gemm", "conv", "attention")


@dataclass(frozen=True)
class Kernel:
    """A kernel, copy or fill of one name; times are means per step.

    Args:
        name: As the recording writes it.
        kind: Its class (`uncork.kernels.CLASSES`), or ``memcpy`` and ``memset``.
        calls: Calls in all steps.
        calls_per_step: Calls per step.
        device_ns: Time of all of them.
        mean_ns: Mean time of one.
        share: Share of the device's time.
        precision: What matrix kernels compute in, empty where the name does not say.
        op: The operator that launches most of it, empty where none is known.
        occupancy_share: Mean estimated occupancy, None where not recorded.
        blocks_per_multiprocessor: Mean thread blocks per multiprocessor, None where not recorded.
    """

    name: str
    kind: str
    calls: int
    calls_per_step: float
    device_ns: int
    mean_ns: int
    share: float
    precision: str
    op: str
    occupancy_share: float | None
    blocks_per_multiprocessor: float | None


@dataclass(frozen=True)
class KernelTable(Measurement):
    """The work of the device.

    Args:
        kernels: Largest first.
        step_ns: Mean duration of a step.
        device_ns: Time per step of everything on the device; more than the step where streams overlap.
        class_ns: Class of kernel → time per step.
        precision_ns: What matrix kernels compute in → time per step; ``""`` where names do not say.
        misaligned_ns: Time per step of half-precision kernels that read one or two elements at a time.
    """

    kernels: tuple[Kernel, ...]
    step_ns: int
    device_ns: int
    class_ns: Mapping[str, int]
    precision_ns: Mapping[str, int]
    misaligned_ns: int
    table: ClassVar[str] = "kernels"

    @classmethod
    def of(cls, rank: Rank) -> "KernelTable":
        """Return the table of a rank; without device work there is none."""
        timeline = rank.timeline
        device, table, steps = timeline.device, timeline.events, max(len(timeline.steps), 1)
        inside = np.flatnonzero(contains(timeline.steps.intervals, device.start_ns))
        if not len(inside):
            raise MissingEvidence("device")
        names, back = table.distinct_names(device.row[inside])
        spent = np.bincount(back, device.dur_ns[inside]).astype(np.int64)
        calls = np.split(inside[np.argsort(back, kind="stable")], np.cumsum(np.bincount(back))[:-1])
        kind_of = _kinds(rank, np.array([of_name[0] for of_name in calls]))
        texts = [table.strings.text(index) for index in names.tolist()]
        order = np.argsort(-spent, kind="stable")
        total = int(spent.sum())
        figures = {key: table.floats(key) for key in (_OCCUPANCY, _BLOCKS)}
        kernels = tuple(
            _kernel(rank, calls[one], (texts[one], kind_of[one]), figures, (steps, total))
            for one in order[:MOST_KERNELS]
        )

        def summed(label: Sequence[str], wanted: Sequence[bool]) -> dict[str, int]:
            sums: dict[str, int] = {}
            for one, use in enumerate(wanted):
                if use:
                    sums[label[one]] = sums.get(label[one], 0) + int(spent[one])
            return {name: ns // steps for name, ns in sums.items()}

        matrix = [kind in MATRIX for kind in kind_of]
        return cls(
            kernels=kernels,
            step_ns=int(timeline.steps.dur_ns.mean()),
            device_ns=total // steps,
            class_ns=summed(kind_of, [True] * len(texts)),
            precision_ns=summed(
                [matrix_precision(text) if use else "" for text, use in zip(texts, matrix, strict=True)], matrix
            ),
            misaligned_ns=int(spent[[is_misaligned(text) for text in texts]].sum()) // steps,
        )

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per kernel."""
        return [dict(vars(kernel)) for kernel in self.kernels]

    def share(self, *classes: str) -> float:
        """Return the share of the step that some classes of kernels take."""
        return sum(self.class_ns.get(kind, 0) for kind in classes) / self.step_ns if self.step_ns else 0.0

    def top(self, *classes: str) -> str:
        """Return the name of the longest kernel of some classes, or empty."""
        return next((kernel.name for kernel in self.kernels if kernel.kind in classes), "")


def _kinds(rank: Rank, inside: IntArray) -> list[str]:
    """Return the class of each device slice."""
    device = rank.timeline.device
    codes = rank.timeline.kernel_class[inside]
    labels = np.array([*CLASSES, "memcpy", "memset"])
    code = np.where(device.kind[inside] == Kind.GPU_MEMCPY, len(CLASSES), codes)
    code = np.where(device.kind[inside] == Kind.GPU_MEMSET, len(CLASSES) + 1, code)
    found: list[str] = labels[code].tolist()
    return found


def _kernel(rank: Rank, slices: IntArray, label: tuple[str, str], figures: Figures, whole: tuple[int, int]) -> Kernel:
    """Return one kernel of the table.

    Args:
        rank: Whose.
        slices: Its calls, indices in the device slices.
        label: Its name and class.
        figures: What the recording says of each event by key.
        whole: Number of steps, and time of everything on the device.
    """
    timeline, table = rank.timeline, rank.timeline.events
    (name, kind), (steps, total_ns) = label, whole
    spent = int(timeline.device.dur_ns[slices].sum())
    launcher = timeline.launch_op[slices]
    known = timeline.host.row[launcher[launcher >= 0]]
    op = int(np.bincount(table.name[known]).argmax()) if len(known) else -1
    rows = timeline.device.row[slices]
    return Kernel(
        name=name,
        kind=kind,
        calls=len(slices),
        calls_per_step=len(slices) / steps,
        device_ns=spent // steps,
        mean_ns=spent // len(slices),
        share=spent / total_ns if total_ns else 0.0,
        precision=matrix_precision(name) if kind in MATRIX else "",
        op=table.strings.text(op) if op >= 0 else "",
        occupancy_share=_mean(figures[_OCCUPANCY][rows], 0.01),
        blocks_per_multiprocessor=_mean(figures[_BLOCKS][rows], 1.0),
    )


def _mean(values: npt.NDArray[np.float64], scale: float) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) * scale if len(known) else None
