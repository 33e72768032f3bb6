"""Collectives: each collective of a rank, and over ranks who waited for whom.

Axes of the functions over ranks: matched collectives × ranks.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from uncork.events import EventTable, Kind
from uncork.inputs import Args
from uncork.intervals import covered_ns
from uncork.kernels import CLASSES
from uncork.measure import Measurement, MissingEvidence, Rank
from uncork.records import dataclass
from uncork.timeline import Timeline

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_CPU_BACKEND = re.compile(r"^(gloo|mpi|ucc|ccl|oneccl):")
_REGION = re.compile(r"^(nccl|rccl|hccl|xccl|ccl|oneccl|gloo|mpi|ucc|smddp):(?P<name>\w+)|^c10d::(?P<op>\w+)")
_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("reduce_scatter", r"reduce_?scatter"),
        ("all_to_all", r"all_?to_?all"),
        ("all_gather", r"all_?gather"),
        ("all_reduce", r"all_?reduce|cross_device_reduce|(one|two)_?shot"),
        ("broadcast", r"broadcast|bcast"),
        ("send_recv", r"send_?recv|(^|[^a-z])i?(send|recv)([^a-z]|$)|coalesced"),
        ("gather", r"gather"),
        ("scatter", r"scatter"),
        ("reduce", r"reduce"),
        ("barrier", r"barrier"),
    )
)
_BYTES_PER_ELEMENT = {
    "byte": 1, "char": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "half": 2, "bfloat16": 2, "short": 2,
    "int": 4, "float": 4, "double": 8, "long": 8, "complexfloat": 8, "complexdouble": 16,
}  # fmt: skip
_BUS_BYTES = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}
_ELEMENT_TYPE = re.compile(
    r"[_ ](f16|bf16|f32|f64|half|float|double|u?int8_t|u?int32_t|u?int64_t|[iu]8|[iu]32|[iu]64)(_|\b)"
)
_TYPE_BYTES = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "half": 2, "float": 4, "double": 8, "int8_t": 1, "uint8_t": 1,
    "int32_t": 4, "uint32_t": 4, "int64_t": 8, "uint64_t": 8, "i8": 1, "u8": 1, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
}  # fmt: skip
_LARGER_OUTPUT = frozenset({"all_gather", "gather"})
"""Names whose output is larger than their input."""
UNMATCHED = frozenset({"send_recv"})
"""Names that two ranks of a group share, not all: `uncork.measure.stages` matches them."""


@dataclass(frozen=True, eq=False)
class Collectives(Measurement):
    """The collectives of a rank in order of their start; arrays have shape (collectives,).

    Args:
        groups: Process groups (name and ranks, as far as the recording says).
        names: Kinds of collectives (``all_reduce``) that occur.
        group: Index in `groups`.
        name: Index in `names`.
        bytes: Size of the larger of input and output, -1 where the recording does not say.
        start_ns: Start, on the rank's own clock.
        dur_ns: Duration.
        exposed_ns: Part of it in which nothing else works.
        stream: Number of the stream (device) or thread (host).
        step: Step in which it starts, counted from the recording's first mark, -1 for outside.
        group_size: Ranks of its group, 0 where the recording does not say.
        first_step: Steps left out as warm-up before the ledger's first.
    """

    groups: tuple[str, ...]
    names: tuple[str, ...]
    group: IntArray
    name: IntArray
    bytes: IntArray
    start_ns: IntArray
    dur_ns: IntArray
    exposed_ns: IntArray
    stream: IntArray
    step: IntArray
    group_size: IntArray
    first_step: int = 0

    @classmethod
    def of(cls, rank: Rank) -> "Collectives":
        """Return the collectives of a rank; raises `MissingEvidence` where it has none."""
        timeline = rank.timeline
        found = _on_device(timeline) if len(timeline.device) else _on_host(timeline)
        if not len(timeline.device) and rank.deep is not timeline:
            found = _with_sizes_of(found, timeline, rank.deep)
        if not len(found.start_ns):
            raise MissingEvidence("collectives")
        steps = timeline.steps
        step = steps.at(found.start_ns)
        step[step >= 0] += len(steps.left_out_ns)
        exposed = rank.ledger.intervals.get("comm", np.empty((0, 2), np.int64))
        groups, group = _coded(found.group)
        names, name = _coded(found.name)
        return cls(
            groups=groups,
            names=names,
            group=group,
            name=name,
            bytes=found.bytes,
            start_ns=found.start_ns,
            dur_ns=found.end_ns - found.start_ns,
            exposed_ns=covered_ns(exposed, found.start_ns, found.end_ns),
            stream=found.track,
            step=step,
            group_size=found.group_size,
            first_step=len(steps.left_out_ns),
        )

    def __len__(self) -> int:
        """Return the number of collectives."""
        return len(self.start_ns)


@dataclass(frozen=True, eq=False)
class _Found:
    """Collectives before their names are coded; arrays as in `Collectives`."""

    start_ns: IntArray
    end_ns: IntArray
    track: IntArray
    name: list[str]
    group: list[str]
    bytes: IntArray
    group_size: IntArray


def rows_of(timeline: Timeline) -> IntArray:
    """Return the places of the collectives among the device's work, or without a device their rows of the table."""
    if len(timeline.device):
        wanted = (timeline.kernel_class == CLASSES.index("comm")) & (timeline.device.kind == Kind.KERNEL)
        return np.flatnonzero(wanted)
    table = timeline.events
    rows = np.flatnonzero(table.name_is(_CPU_BACKEND, Kind.USER_ANNOTATION, Kind.CPU_OP))
    return rows[np.argsort(table.ts_ns[rows], kind="stable")]


def _on_device(timeline: Timeline) -> _Found:
    """Return the collectives among the kernels."""
    table, device, host = timeline.events, timeline.device, timeline.host
    rows = rows_of(timeline)
    told = _told_by(timeline, device.launch[rows])
    facts = np.where((table.texts("Collective name")[device.row[rows]] >= 0) | (told < 0), device.row[rows], told)
    region = host.ancestor_where(timeline.named(_REGION, Kind.CPU_OP, Kind.USER_ANNOTATION), device.launch[rows])
    speaks = np.where(region >= 0, event_rows(timeline, region), device.row[rows])
    found = _described(
        table,
        start_ns=device.start_ns[rows],
        end_ns=device.end_ns[rows],
        track=device.track[rows],
        facts=facts,
        spoken=table.name[speaks],
    )
    shaped = _shaped_bytes(table, speaks, table.names(device.row[rows]))
    return replace(found, bytes=np.where(found.bytes < 0, shaped, found.bytes))


def _on_host(timeline: Timeline) -> _Found:
    """Return the collectives that a CPU backend makes: its regions, on whatever thread."""
    table, rows = timeline.events, rows_of(timeline)
    found = _described(
        table,
        start_ns=table.ts_ns[rows],
        end_ns=table.end_ns[rows],
        track=table.track[rows].astype(np.int64),
        facts=rows,
        spoken=table.name[rows],
    )
    return replace(found, bytes=np.where(found.bytes < 0, _input_bytes(table, rows, found.name), found.bytes))


def _input_bytes(table: EventTable, rows: IntArray, names: Sequence[str]) -> IntArray:
    """Return the sizes of what a CPU backend's regions were handed, -1 where that is not recorded or not the larger."""
    pairs = list(zip(table.texts("Input Dims")[rows].tolist(), table.texts("Input type")[rows].tolist(), strict=True))
    sizes = {pair: _tensor_bytes(*map(table.strings.value, pair)) for pair in set(pairs) if min(pair) >= 0}
    known = (sizes.get(pair, 0) if name not in _LARGER_OUTPUT else 0 for pair, name in zip(pairs, names, strict=True))
    return np.array([size or -1 for size in known], np.int64)


def _tensor_bytes(dims: object, types: object) -> int:
    """Return the bytes of the tensors among recorded inputs; 0 where those are no lists."""
    if not isinstance(dims, list) or not isinstance(types, list):
        return 0
    inputs = Args(dims, types, ())
    try:
        return inputs.tensor_bytes(*range(len(dims)))
    except LookupError:
        return 0


def _with_sizes_of(found: _Found, timeline: Timeline, deep: Timeline) -> _Found:
    """Return collectives with the sizes that another window of the run knows, in steps with the same collectives."""
    told = _on_host(deep)
    known = {names: told.bytes[places] for names, places in _by_step(told, deep)}
    sizes = found.bytes.copy()
    for names, places in _by_step(found, timeline):
        if names in known:
            sizes[places] = np.where(sizes[places] < 0, known[names], sizes[places])
    return replace(found, bytes=sizes)


def _by_step(found: _Found, timeline: Timeline) -> Iterator[tuple[tuple[str, ...], IntArray]]:
    """Yield the names and the places of each step's collectives."""
    step = timeline.steps.at(found.start_ns)
    for number in range(len(timeline.steps)):
        places = np.flatnonzero(step == number)
        yield tuple(found.name[place] for place in places), places


def _told_by(timeline: Timeline, launch: IntArray) -> IntArray:
    """Return the event row of the ``record_param_comms`` around each launch, -1 where there is none."""
    host = timeline.host
    tells = timeline.named("record_param_comms", Kind.CPU_OP, Kind.USER_ANNOTATION)
    place = host.ancestor_where(tells, launch)
    return event_rows(timeline, place)


def event_rows(timeline: Timeline, place: IntArray) -> IntArray:
    """Return the event row of each host slice, -1 for none; a recording of the device alone has no slices."""
    row = timeline.host.row
    return np.where(place >= 0, row[place], -1) if len(row) else np.full(len(place), -1, np.int64)


def _described(
    table: EventTable,
    *,
    start_ns: IntArray,
    end_ns: IntArray,
    track: IntArray,
    facts: IntArray,
    spoken: npt.NDArray[np.integer],
) -> _Found:
    """Return collectives with what their arguments tell: group, size, name."""
    text = table.strings.text
    said = table.texts("Collective name")[facts]
    group, members = table.texts("Process Group Name")[facts], table.texts("Process Group Ranks")[facts]
    dtype = table.texts("dtype")[facts]
    elements = np.maximum(table.ints("In msg nelems")[facts], table.ints("Out msg nelems")[facts])
    width = np.array(
        [_BYTES_PER_ELEMENT.get(text(int(one)).casefold(), 0) if one >= 0 else 0 for one in dtype], np.int64
    )
    return _Found(
        start_ns=start_ns,
        end_ns=end_ns,
        track=track,
        name=[collective_name(text(int(a if a >= 0 else b))) for a, b in zip(said, spoken, strict=True)],
        group=[" ".join(text(int(one)) for one in both if one >= 0) for both in zip(group, members, strict=True)],
        bytes=np.where((elements > 0) & (width > 0), elements * width, -1),
        group_size=table.ints("Group size", missing=0)[facts],
    )


def _shaped_bytes(table: EventTable, rows: IntArray, kernels: Sequence[str]) -> IntArray:
    """Return the sizes that the regions' input shapes and the kernels' element types tell, -1 where they do not.

    Recordings before torch 2.2 hold no message sizes, but the shapes of what was handed over.
    """
    shapes = table.texts("Input Dims")[rows]
    elements = {one: _elements(table.strings.value(one)) for one in set(shapes.tolist()) if one >= 0}
    sizes = [
        elements.get(int(shape), 0) * (_TYPE_BYTES[found[1]] if (found := _ELEMENT_TYPE.search(kernel)) else 0)
        for shape, kernel in zip(shapes, kernels, strict=True)
    ]
    return np.array([size or -1 for size in sizes], np.int64)


def _elements(shapes: object) -> int:
    """Return the elements of the tensors whose shapes a recording names; 0 where it is no list of shapes."""
    if not isinstance(shapes, list):
        return 0
    tensors = [
        shape for shape in shapes if isinstance(shape, list) and shape and all(type(one) is int for one in shape)
    ]
    return sum(math.prod(shape) for shape in tensors)


def collective_name(name: str) -> str:
    """Return the kind of collective that a kernel's, region's or operator's name speaks of; else ``collective``."""
    folded = name.casefold()
    return next((kind for kind, pattern in _NAMES if pattern.search(folded)), "collective")


def bus_factor(name: str, ranks: int) -> float:
    """Return the bytes each link carries per byte of the message: what makes a rate comparable to a link's figure.

    nccl-tests, PERFORMANCE.md: 2 (n − 1) / n for all-reduce, (n − 1) / n for what gathers or scatters, else 1.
    """
    if ranks < 2 or name not in _BUS_BYTES:
        return 1.0
    return _BUS_BYTES[name] * (ranks - 1) / ranks


def _coded(texts: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """Return the distinct texts in order of appearance, and the place of each text among them."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    return tuple(places), np.array([places[text] for text in texts], np.int64)
