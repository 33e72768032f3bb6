"""Recordings from a text sketch: what a trace holds is written down, so what must be found in it is known.

A sketch has one event a line: the track, the time, the name as the profiler would write it::

    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 6ms..6.5ms aten::conv2d {"Input Dims": [[8, 3, 32, 32]]} -> stream 7 6.6ms..9.6ms cudnn_conv_kernel
      backward 7ms..8ms autograd::engine::evaluate_function: ConvolutionBackward0 {"Sequence number": 7}

Events:

* The track is ``main``, ``backward`` (autograd's thread), ``thread NAME`` or ``stream N`` of device 0 (of another one
  with ``{"device": 1}``).
* The time is ``START..END``, or ``START`` for an instant; ``x200 every 10us`` behind it repeats the line.
* The kind follows from the name (``aten::mm`` an operator, ``cudaLaunchKernel`` a runtime call, ``train.py(3): f`` a
  Python frame, ``ProfilerStep#1`` a region, ``Memcpy …`` a copy, ``[memory]`` an allocation); a word before the time
  says otherwise: ``op region runtime python overhead gc`` on threads, ``kernel memcpy memset region sync`` on streams.
* ``{…}`` at the end are the event's ``args``; a ``Sequence number`` counts on from step to step.
* ``-> stream N …`` is device work that the line launches: the runtime call, correlation and arrow are added. A line
  may launch several.
* ``rank 1: …`` gives a line to one rank only. Text from ``# `` on is a remark.

Around them:

* ``steps 4 x 10ms`` repeats the lines below it, each step 10 ms after the last, in a ``ProfilerStep#N``;
  ``unmarked`` behind it leaves that out. ``once`` ends the repetition: its times count from where the steps ended.
* ``ranks 2`` makes two recordings. ``device NAME {…}`` lists a device with its properties, ``with shapes stacks
  memory modules flops`` says what was asked for, ``trace {…}`` sets top-level fields.
* What the recorder of ``uncork run`` adds to a trace: the track ``loader`` (or ``loader N`` for a worker) holds its
  times of the DataLoader, ``setting NAME VALUE`` what it read from the objects, ``window NAME N x DURATION`` a stretch
  of steps (with ``{…}`` behind it: the fields of `uncork.recording.Paging` or `CoreTime`), ``function FILE:LINE NAME
  CALLS x SELF TOTAL`` a line of cProfile.
* ``samples NAME VALUE VALUE …`` are figures sampled once a second (``process_rss_bytes 1GiB 1.5GiB``).
* ``snapshot …`` is a line of a memory snapshot (`uncork.testing.snapshots`); a sketch of such lines only is no trace.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from uncork.errors import UncorkError

_UNITS_NS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = r"(-?[\d.]+)(ns|us|µs|ms|s)"
_EVENT = re.compile(
    r"(?P<track>main|backward|thread \S+|stream \d+|loader(?: \d+)?)"
    r"(?: (?P<kind>op|region|runtime|python|overhead|gc|kernel|memcpy|memset|sync))?"
    rf" (?P<start>{_TIME})(?:\.\.(?P<end>{_TIME}))?(?: x(?P<times>\d+) every (?P<every>{_TIME}))? (?P<name>.+)"
)
_STEPS = re.compile(rf"steps (\d+) x (?P<length>{_TIME})(?P<unmarked> unmarked)?")
_RANK = re.compile(r"rank (\d+): (.*)")
_REMARK = re.compile(r"(^|\s)#(\s.*|$)")
_FLAGS = {
    "shapes": "record_shapes", "stacks": "with_stack", "memory": "profile_memory", "modules": "with_modules",
    "flops": "with_flops",
}  # fmt: skip
SEQUENCE_STEP = 1_000
"""How far a ``Sequence number`` moves from one step to the next."""


class SketchError(UncorkError):
    """A line of a sketch cannot be read, or says what no profiler could see."""


@dataclass(frozen=True)
class Event:
    """One line, or one arrow of a line, of a sketch.

    Args:
        track: ``main``, ``backward``, ``thread NAME`` or ``stream N``.
        kind: Kineto's category.
        start_ns: Start from the beginning of its block.
        end_ns: End from there; equal to the start for instants.
        name: The event's name.
        args: Its arguments.
        launches: Device work that it launches.
        rank: The only rank that has it, or None.
    """

    track: str
    kind: str
    start_ns: int
    end_ns: int
    name: str
    args: Mapping[str, object] = field(default_factory=dict)
    launches: tuple["Event", ...] = ()
    rank: int | None = None

    def shifted(self, by_ns: int, steps: int = 0) -> "Event":
        """Return the event later, with its sequence number as many steps on."""
        args = dict(self.args)
        if isinstance(number := args.get("Sequence number"), int):
            args["Sequence number"] = number + SEQUENCE_STEP * steps
        return replace(
            self,
            start_ns=self.start_ns + by_ns,
            end_ns=self.end_ns + by_ns,
            args=args,
            launches=tuple(event.shifted(by_ns) for event in self.launches),
        )


@dataclass
class Block:
    """Lines that are placed together, once or once per step.

    Args:
        steps: How often.
        length_ns: Distance from one to the next.
        marked: Each is a ``ProfilerStep#N``.
        events: What happens in each.
    """

    steps: int = 1
    length_ns: int = 0
    marked: bool = False
    events: list[Event] = field(default_factory=list)


@dataclass
class Sketch:
    """A sketch as read: its blocks, and what stands around them.

    Args:
        blocks: In order of time.
        ranks: Recordings to make.
        devices: ``deviceProperties``.
        fields: Other top-level fields of the trace.
        extras: Lines about what the recorder knows: (only rank or None, word, rest).
    """

    blocks: list[Block] = field(default_factory=lambda: [Block()])
    ranks: int = 1
    devices: list[dict[str, object]] = field(default_factory=list)
    fields: dict[str, object] = field(default_factory=dict)
    extras: list[tuple[int | None, str, str]] = field(default_factory=list)

    def events(self, rank: int) -> Iterator[Event]:
        """Yield one rank's events with their places in the whole recording."""
        start_ns = number = 0
        for block in self.blocks:
            for _ in range(block.steps):
                if block.marked:
                    number += 1
                    end_ns = start_ns + block.length_ns
                    yield Event("main", "user_annotation", start_ns, end_ns, f"ProfilerStep#{number}")
                for event in block.events:
                    if event.rank in (None, rank):
                        yield event.shifted(start_ns, number)
                start_ns += block.length_ns


def read_sketch(text: str) -> Sketch:
    """Return a sketch, or raise `SketchError` with the line that cannot be read."""
    sketch = Sketch()
    for number, raw in enumerate(text.splitlines(), 1):
        line = _REMARK.sub("", raw).strip()
        if not line:
            continue
        try:
            _read_line(sketch, line)
        except (ValueError, SketchError) as error:
            raise SketchError(f"line {number} of the sketch: {error}: {line}") from None
    return sketch


def _read_line(sketch: Sketch, line: str) -> None:
    rank, only = None, _RANK.fullmatch(line)
    if only:
        rank, line = int(only[1]), only[2].strip()
    word, _, rest = line.partition(" ")
    if word == "steps":
        found = _STEPS.fullmatch(line)
        if not found:
            raise SketchError("steps are written as 'steps 4 x 10ms'")
        sketch.blocks.append(Block(int(found[1]), nanoseconds(found["length"]), not found["unmarked"]))
    elif word == "once":
        sketch.blocks.append(Block())
    elif word == "ranks":
        sketch.ranks = int(rest)
    elif word == "device":
        name, properties = _name_and_args(rest)
        sketch.devices.append({"id": len(sketch.devices), "name": name, **properties})
    elif word == "trace":
        sketch.fields |= json.loads(rest)
    elif word == "with":
        sketch.fields |= {_FLAGS.get(flag, flag): 1 for flag in rest.split()}
    elif word in ("setting", "window", "function", "snapshot", "samples"):
        sketch.extras.append((rank, word, rest))
    else:
        sketch.blocks[-1].events.extend(_events(line, rank))


def _events(line: str, rank: int | None) -> Iterator[Event]:
    """Yield the events of a line: one, or one for each time it is repeated."""
    head, *launched = re.split(r" -> (?=stream \d)", line)
    found = _EVENT.fullmatch(head)
    if not found:
        raise SketchError("an event is written as 'TRACK START..END NAME'")
    event = replace(_event(found), rank=rank, launches=tuple(_event(_launched(part)) for part in launched))
    late = [part for part in event.launches if part.start_ns < event.start_ns]
    if late:
        raise SketchError(f"{late[0].name} starts before its launch")
    every_ns = nanoseconds(found["every"]) if found["times"] else 0
    for index in range(int(found["times"] or 1)):
        yield event.shifted(index * every_ns)


def _launched(part: str) -> "re.Match[str]":
    found = _EVENT.fullmatch(part)
    if not found or found["times"]:
        raise SketchError("device work is written as '-> stream N START..END NAME'")
    return found


def _event(found: "re.Match[str]") -> Event:
    name, args = _name_and_args(found["name"])
    start_ns = nanoseconds(found["start"])
    end_ns = nanoseconds(found["end"]) if found["end"] else start_ns
    if end_ns < start_ns:
        raise SketchError("it ends before it starts")
    return Event(found["track"], _kind(found["track"], found["kind"], name), start_ns, end_ns, name, args)


def _name_and_args(text: str) -> tuple[str, dict[str, object]]:
    """Return a name and the JSON object that may stand behind it; kernels' names have braces of their own."""
    name, brace, rest = text.partition(' {"')
    if not brace:
        return text.strip(), {}
    args: dict[str, object] = json.loads('{"' + rest)
    return name.strip(), args


def nanoseconds(text: str) -> int:
    """Return a duration such as ``1.5ms`` in nanoseconds."""
    found = re.fullmatch(_TIME, text.strip())
    if not found:
        raise SketchError(f"'{text}' is not a time such as 1.5ms")
    return round(float(found[1]) * _UNITS_NS[found[2]])


_KINDS = {
    "op": "cpu_op", "region": "user_annotation", "runtime": "cuda_runtime", "python": "python_function",
    "overhead": "overhead", "gc": "python_gc",
    "kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset", "sync": "cuda_sync",
}  # fmt: skip
_BY_NAME = (
    (re.compile(r"ProfilerStep#|enumerate\(DataLoader\)|Optimizer\.|DistributedDataParallel\.|(gloo|nccl):"), "region"),
    (re.compile(r"(cuda|hip|aclrt)[A-Z]|cu[A-Z]"), "runtime"),
    (re.compile(r"\S+\.py\(\d+\): |nn\.Module: |<built-in "), "python"),
)


def _kind(track: str, said: str | None, name: str) -> str:
    """Return Kineto's category for an event."""
    if track.startswith("loader"):
        return "loader"
    if track.startswith("stream"):
        if said == "region":
            return "gpu_user_annotation"
        return _KINDS[said or {"Memcpy": "memcpy", "Memset": "memset"}.get(name[:6], "kernel")]
    if name == "[memory]":
        return "cpu_instant_event"
    return _KINDS[said or next((kind for pattern, kind in _BY_NAME if pattern.match(name)), "op")]
