"""Operator: one operator's time, place, shapes, work and roofline; a row of the table of operators."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from uncork.findings import Location
from uncork.places import Place
from uncork.records import dataclass
from uncork.roofline import OVER_PEAK_SHARE


@dataclass(frozen=True)
class Operator:
    """An operator of one name and phase, or the part of it with one place and shape; times are means per step.

    Args:
        name: Its name (``aten::addmm``).
        phase: ``forward backward recompute optimizer loading``.
        calls: Calls in all steps.
        calls_per_step: Calls per step.
        cpu_self_ns: Host time without the operators it calls.
        cpu_total_ns: Host time with them.
        cpu_usual_ns: Host time without them and without interruptions: no call counts for ten times the median.
        device_self_ns: Time of the device work that it launched itself.
        device_total_ns: And of what it calls.
        module: Module path; with several parts that of the largest. None where unknown.
        place: The user's line, likewise.
        shapes: Sizes of its inputs as recorded, JSON; empty where not recorded.
        dtype: Type of its first tensor (``fp32``, ``bf16`` …); empty where not recorded.
        sizes: The sizes people think in (``m n k``, ``kernel stride`` …), where its work is known.
        memory_bytes: What it allocated itself; None where memory was not recorded.
        flop: Its work, None where unknown.
        moved_bytes: What it must at least move, None where unknown.
        precision: What its kernels compute in, by their names, else by its types.
        roof_ns: The least time that the device needs for that work, None where unknown.
        roofline_share: That over the time it took.
        compute_bound: Whether arithmetic sets that least time.
        kernel: The kernel that takes most of its time; empty where none is known.
        kernel_class: What that kernel does (`uncork.kernels.CLASSES`); empty likewise.
        op_class: What the operator is about (`uncork.operators.CLASSES`).
        parts: Its parts, largest first; empty in parts themselves.
        parts_count: How many parts there are in all.
    """

    name: str
    phase: str
    calls: int
    calls_per_step: float
    cpu_self_ns: int
    cpu_total_ns: int
    device_self_ns: int
    device_total_ns: int
    cpu_usual_ns: int = 0
    module: str | None = None
    place: Place | None = None
    shapes: str = ""
    dtype: str = ""
    sizes: Mapping[str, object] = field(default_factory=dict)
    memory_bytes: int | None = None
    flop: int | None = None
    moved_bytes: int | None = None
    precision: str = ""
    roof_ns: int | None = None
    roofline_share: float | None = None
    compute_bound: bool | None = None
    kernel: str = ""
    kernel_class: str = ""
    op_class: str = ""
    parts: tuple["Operator", ...] = ()
    parts_count: int = 1

    @property
    def over_peak(self) -> bool:
        """Return whether it seems faster than its device can be: an error of ours, and said."""
        return self.roofline_share is not None and self.roofline_share > OVER_PEAK_SHARE

    @property
    def where(self) -> str:
        """Return its place in one line: module and line as far as known, else its name and phase."""
        line = self.place.text if self.place else None
        return " · ".join(filter(None, (self.module, line))) or f"{self.name}, {self.phase}"

    @property
    def sizes_text(self) -> str:
        """Return its sizes in one line, or the text that says they were not recorded."""
        return ", ".join(f"{name} {value}" for name, value in self.sizes.items()) or "@unknown.not_recorded"

    def location(self, rank: int | None = None) -> Location:
        """Return where it is; of several places the one that takes most time."""
        place = self.place
        return Location(
            rank=rank,
            module=self.module,
            file=place.file if place else None,
            line=place.line if place else None,
            function=place.function if place else None,
            op=self.name,
        )

    def row(self) -> dict[str, Any]:
        """Return it as plain values; times, bytes and work are means per step."""
        place = self.place
        values = {name: getattr(self, name) for name in _COLUMNS}
        values |= {
            "file": place.file if place else None,
            "line": place.line if place else None,
            "function": place.function if place else None,
            "line_exact": place.exact if place else None,
            "sizes": dict(self.sizes),
            "roofline_share": None if self.over_peak else self.roofline_share,
            "over_peak": self.over_peak,
        }
        if self.parts:
            values["parts"] = [part.row() for part in self.parts]
        return values


_COLUMNS = (
    *("name", "phase", "calls", "calls_per_step", "cpu_self_ns", "cpu_total_ns", "device_self_ns", "device_total_ns"),
    *("module", "shapes", "dtype", "memory_bytes", "flop", "moved_bytes", "precision", "roof_ns", "compute_bound"),
    *("kernel", "kernel_class", "op_class", "parts_count"),
)
