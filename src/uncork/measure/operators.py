"""OperatorTable: operators with their time on host and device, place in the user's code, shapes, work and roofline."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from uncork.calltree import PHASES
from uncork.events import Kind
from uncork.formulas import Work, sizes_of
from uncork.hardware import Peaks, peaks_of
from uncork.inputs import PRECISION
from uncork.kernels import kernel_class
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.measure.operator import Operator
from uncork.measure.operator_groups import OperatorGroups, group_operators
from uncork.operators import LAUNCH_CALL, operator_class
from uncork.records import dataclass
from uncork.roofline import OVER_PEAK_SHARE, roof
from uncork.tensorcores import matrix_precision
from uncork.timeline import once

MOST_OPERATORS = 100
MOST_PARTS = 8
MOST_SHAPES_CHARACTERS = 400
_matrix_precision = lru_cache(4096)(matrix_precision)  # the same names come back in thousands of parts
_as_json = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class OperatorTable(Measurement):
    """The operators that take most time.

    Args:
        operators: By name and phase, largest first: by device time where a device works, else by host time.
        steps: Number of steps.
        step_ns: Mean duration of a step.
        on_device: Whether a device works in the recording.
        device_ns: Device time per step of everything that an operator launched.
        cpu_ns: Host time per step of all operators.
        peaks: What the device can do, None where it is not known.
        shapes: Whether any operator has its shapes.
        unseen_device: Whether the host launches device work that is not in the recording.
    """

    operators: tuple[Operator, ...]
    steps: int
    step_ns: int
    on_device: bool
    device_ns: int
    cpu_ns: int
    peaks: Peaks | None
    shapes: bool
    unseen_device: bool = False
    table: ClassVar[str] = "operators"

    @classmethod
    def of(cls, rank: Rank) -> "OperatorTable":
        """Return the table of a rank; without host operators there is none."""
        timeline, parts = rank.timeline, operator_parts(rank)
        steps = max(len(timeline.steps), 1)
        on_device = len(timeline.device) > 0
        made = sorted(_by_name(parts, on_device), key=lambda op: -_weight(op, on_device))
        return cls(
            operators=_largest(made),
            steps=steps,
            step_ns=int(timeline.steps.dur_ns.mean()),
            on_device=on_device,
            device_ns=sum(part.device_self_ns for part in parts),
            cpu_ns=sum(part.cpu_self_ns for part in parts),
            peaks=peaks_of(rank.recording.devices),
            shapes=any(part.shapes for part in parts),
            unseen_device=not on_device and _launches(rank),
        )

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per operator and phase, with its largest parts."""
        return [operator.row() for operator in self.operators]

    def weight_ns(self, operator: Operator) -> int:
        """Return the time per step that an operator takes itself: of the device, or without one of the host."""
        return _weight(operator, self.on_device)

    def share(self, operator: Operator) -> float:
        """Return the share of the step that an operator takes itself."""
        return self.weight_ns(operator) / self.step_ns if self.step_ns else 0.0


def operator_parts(rank: Rank) -> list[Operator]:
    """Return every part of every operator of a rank, made once; raises `MissingEvidence` where there is none."""
    parts = _all_parts(rank)
    if not parts:
        raise MissingEvidence("host")
    return parts


@once
def _all_parts(rank: Rank) -> list[Operator]:
    known = peaks_of(rank.recording.devices)
    parts = _parts(group_operators(rank.calltree), max(len(rank.timeline.steps), 1), known)
    return parts if rank.deep is rank.timeline else _with_places(parts, rank, known)


@once
def deep_parts(rank: Rank) -> list[Operator]:
    """Return every part of every operator in the recording that knows places and shapes; times are sums over it."""
    return _parts(group_operators(rank.deep_calltree), 1, None)


def _launches(rank: Rank) -> bool:
    """Return whether the host launches work for a device."""
    table = rank.timeline.events
    return bool(table.fitting(LAUNCH_CALL, Kind.RUNTIME).any())


def _weight(operator: Operator, on_device: bool) -> int:
    return operator.device_self_ns if on_device else operator.cpu_self_ns


def _parts(groups: OperatorGroups, steps: int, peaks: Peaks | None) -> list[Operator]:
    """Return the operators of each place and shape."""
    tree, memory = groups.tree, groups.memory_bytes
    memory_bytes = [None] * len(groups) if memory is None else (memory // steps).tolist()
    longest, saves = groups.kernels
    work, counts, counted_ns = groups.work, groups.counted_calls.tolist(), groups.counted_device_ns.tolist()
    sizes = lru_cache(None)(lambda name, code: sizes_of(name, groups.value(code)))
    shapes = lru_cache(None)(lambda code: _shapes(groups.value(code)))
    dtype = lru_cache(None)(lambda code: _dtype(groups.value(code)))
    sums = {name: (getattr(groups, name) // steps).tolist() for name in _SUMMED_NS}
    columns = zip(
        groups.names, longest, tree.phase[groups.first].tolist(), tree.module[groups.first].tolist(),
        tree.place[groups.first].tolist(), groups.calls.tolist(), groups.codes("Input Dims"),
        groups.codes("Input type"), memory_bytes, *sums.values(), strict=True,
    )  # fmt: skip
    found = []
    for group, (name, kernel, phase, module, place, calls, dims, types, held, *times) in enumerate(columns):
        one = work[group]
        known: dict[str, Any] = {} if one else {"sizes": sizes(name, dims)}
        if one and counts[group]:
            top = None if one.matrix and saves[group] else peaks
            known = _against_roof(one, kernel, counts[group] / steps, counted_ns[group] / steps, top)
        found.append(
            Operator(
                name=name,
                phase=PHASES[phase],
                calls=calls,
                calls_per_step=calls / steps,
                **dict(zip(sums, times, strict=True)),
                module=tree.modules[module] if module >= 0 else None,
                place=tree.places[place] if place >= 0 else None,
                shapes=shapes(dims),
                dtype=dtype(types),
                memory_bytes=held,
                kernel=kernel,
                kernel_class=kernel_class(kernel) if kernel else "",
                op_class=operator_class(name),
                **known,
            )
        )
    return found


def _against_roof(work: Work, kernel: str, calls: float, device_ns: float, peaks: Peaks | None) -> dict[str, Any]:
    """Return an operator's fields of its work, and of its roofline where the device is known and worked.

    Args:
        work: Of one call.
        kernel: The operator's kernel.
        calls: Calls per step whose work counts.
        device_ns: Device time of those calls per step.
        peaks: What the device can do.
    """
    # A kernel's name tells fp32 from tf32, which tensors cannot.
    precision = (_matrix_precision(kernel) if work.matrix else "") or work.precision
    top = roof(work, peaks, precision) if peaks and device_ns > 0 else None
    if top and not top.compute_bound and top.ns * calls > OVER_PEAK_SHARE * device_ns:
        # Tensors that lie in a cache, or the same one twice, move fewer bytes than the formula says.
        top = None
    return {
        "sizes": work.sizes,
        "flop": int(work.flop * calls),
        "moved_bytes": int(work.moved_bytes * calls),
        "precision": precision,
        "roof_ns": int(top.ns * calls) if top else None,
        "roofline_share": top.ns * calls / device_ns if top else None,
        "compute_bound": top.compute_bound if top else None,
    }


def _shapes(dims: object) -> str:
    text = _as_json(dims) if isinstance(dims, list) and dims else ""
    return text if len(text) <= MOST_SHAPES_CHARACTERS else text[: MOST_SHAPES_CHARACTERS - 1] + "…"


def _dtype(types: object) -> str:
    named = [str(kind) for kind in types] if isinstance(types, list) else []
    return next((PRECISION[kind] for kind in named if kind in PRECISION), "")


def _by_name(parts: Iterable[Operator], on_device: bool) -> list[Operator]:
    """Return the parts put together by name and phase; place, shape and kernel are those of the largest part."""
    together: dict[tuple[str, str], list[Operator]] = {}
    for part in parts:
        together.setdefault((part.name, part.phase), []).append(part)
    made = []
    for group in together.values():
        group.sort(key=lambda part: (-_weight(part, on_device), -part.cpu_total_ns))
        made.append(_sum(group))
    return made


def _sum(parts: list[Operator]) -> Operator:
    """Return several parts as one operator."""
    with_roof = [part for part in parts if part.roof_ns is not None and part.roofline_share]
    took_ns = sum((part.roof_ns or 0) / (part.roofline_share or 1.0) for part in with_roof)
    sums: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in _SUMMED}
    sums |= {name: _sum_known([getattr(part, name) for part in parts]) for name in _SUMMED_IF_KNOWN}
    return replace(
        parts[0],
        **sums,
        roofline_share=sum(part.roof_ns or 0 for part in with_roof) / took_ns if took_ns else None,
        parts=tuple(parts[:MOST_PARTS]) if len(parts) > 1 else (),
        parts_count=len(parts),
    )


_SUMMED_NS = ("cpu_self_ns", "cpu_total_ns", "cpu_usual_ns", "device_self_ns", "device_total_ns")
_SUMMED = ("calls", "calls_per_step", *_SUMMED_NS)
_SUMMED_IF_KNOWN = ("memory_bytes", "flop", "moved_bytes", "roof_ns")


def _sum_known(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _largest(operators: list[Operator]) -> tuple[Operator, ...]:
    """Return those among the largest by any time, in the given order."""
    kept: set[int] = set()
    for name in ("device_self_ns", "device_total_ns", "cpu_self_ns", "cpu_total_ns"):
        values = np.array([-getattr(operator, name) for operator in operators])
        kept.update(np.argsort(values, kind="stable")[:MOST_OPERATORS].tolist())
    return tuple(operator for place, operator in enumerate(operators) if place in kept)


def _with_places(parts: list[Operator], rank: Rank, peaks: Peaks | None) -> list[Operator]:
    """Return parts with line, shapes and work from the deep window, joined by module path and operator.

    Durations stay those of the main window; where it has no modules, the operator's heaviest place stands for all.
    """
    groups, deep = group_operators(rank.deep_calltree), deep_parts(rank)
    by_key: dict[tuple[str, str, str | None], list[int]] = {}
    for group in np.argsort(-groups.cpu_total_ns, kind="stable").tolist():
        for module in dict.fromkeys((deep[group].module, None)):
            by_key.setdefault((deep[group].name, deep[group].phase, module), []).append(group)
    made = []
    for part in parts:
        candidates = by_key.get((part.name, part.phase, part.module), [])
        made.append(_joined(part, [deep[group] for group in candidates], _mean_work(groups, candidates), peaks))
    return made


def _joined(part: Operator, others: list[Operator], work: tuple[Work, float] | None, peaks: Peaks | None) -> Operator:
    """Return a part with what its counterparts in the deep window know, the heaviest first.

    Args:
        part: From the main window.
        others: Counterparts.
        work: Mean work of a call, and the share of the calls whose work counts.
        peaks: What the device can do.
    """
    if not others:
        return part
    calls = sum(other.calls for other in others)
    known = [other.memory_bytes for other in others if other.memory_bytes is not None]
    part = replace(
        part,
        place=part.place or others[0].place,
        shapes=part.shapes or others[0].shapes,
        dtype=part.dtype or others[0].dtype,
        module=part.module or (others[0].module if len({other.module for other in others}) == 1 else None),
        memory_bytes=int(sum(known) / calls * part.calls_per_step) if known else part.memory_bytes,
    )
    if part.flop is not None or work is None:
        return part
    counted = part.calls_per_step * work[1]
    return replace(part, **_against_roof(work[0], part.kernel, counted, part.device_total_ns, peaks))


def _mean_work(groups: OperatorGroups, candidates: list[int]) -> tuple[Work, float] | None:
    """Return the mean work of a call and the share of calls whose work counts: shapes may differ between calls."""
    worked = [(groups.work[group], int(groups.counted_calls[group])) for group in candidates]
    known = [(work, count) for work, count in worked if work is not None and count]
    if not known:
        return None
    counted = sum(count for _, count in known)
    mean = replace(
        known[0][0],
        flop=int(sum(work.flop * count for work, count in known) / counted),
        moved_bytes=int(sum(work.moved_bytes * count for work, count in known) / counted),
    )
    return mean, counted / int(groups.calls[candidates].sum())
