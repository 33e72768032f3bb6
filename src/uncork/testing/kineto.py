"""A sketch as Kineto documents, one per rank, in the form that torch 2.13 writes."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from uncork.testing.sketch import Event, Sketch, read_sketch

Row = dict[str, Any]
"""One object of ``traceEvents``, or another part of the document."""

BASE_NS = 1_700_000_000_000_000_000
"""``baseTimeNanoseconds``: times in the file are decimal microseconds after it."""
FIRST_NS = 1_000_000_000
"""When a recording begins, after the base."""
_BACKWARD = re.compile(r"^autograd::|Backward\d*$")
MAX_LAUNCH_NS = 5_000
"""A launch takes a few microseconds on the host, or its share of a shorter operator."""


def traces(text: str) -> list[Row]:
    """Return the Kineto documents of a sketch, one per rank."""
    sketch = read_sketch(text)
    return [_Document(sketch, rank).build() for rank in range(sketch.ranks)]


def write_traces(text: str, folder: Path, *, compress: bool = False) -> list[Path]:
    """Return the files ``rank0.pt.trace.json`` … written for a sketch into a folder."""
    paths = []
    for rank, document in enumerate(traces(text)):
        path = folder / f"rank{rank}.pt.trace.json{'.gz' if compress else ''}"
        data = json.dumps(document, ensure_ascii=False).encode()
        path.write_bytes(gzip.compress(data, mtime=0) if compress else data)
        paths.append(path)
    return paths


class _Document:
    """The rows of one rank's trace as they are made.

    Args:
        sketch: What to make.
        rank: Whose.
    """

    def __init__(self, sketch: Sketch, rank: int) -> None:
        self.sketch = sketch
        self.rank = rank
        self.pid = 1000 + rank
        self.tids: dict[str, int] = {"main": self.pid, "backward": self.pid + 1}
        self.rows: list[Row] = []
        self.count: Counter[str] = Counter()
        amd = any(str(device["name"]).startswith("AMD") for device in sketch.devices)
        self.vendor = "hip" if amd else "cuda"

    def build(self) -> Row:
        """Return the document."""
        events = list(self.sketch.events(self.rank))
        for event in events:
            if event.track.startswith("stream"):
                self._device(event, {})
            elif event.kind != "loader":
                self._host(event)
        self._backward_arrows()
        self._python_parents()
        document: Row = {"schemaVersion": 1, "deviceProperties": self.sketch.devices}
        document |= self.sketch.fields
        if self.sketch.ranks > 1:
            document["distributedInfo"] = self._distributed()
        document |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS}
        document["traceEvents"] = [*self._names(events), *self.rows]
        return document

    def _row(self, event: Event, pid: object, tid: int, args: Row) -> Row:
        row: Row = {"ph": "X", "cat": event.kind, "name": event.name, "pid": pid, "tid": tid}
        row["ts"] = _microseconds(FIRST_NS + event.start_ns)
        if event.kind == "cpu_instant_event":
            row |= {"ph": "i", "s": "t"}
        else:
            row["dur"] = _microseconds(event.end_ns - event.start_ns)
        row["args"] = args
        self.rows.append(row)
        return row

    def _host(self, event: Event) -> None:
        args: Row = {}
        if event.kind in ("cpu_op", "user_annotation"):
            args = {"External id": self._next("external"), "Record function id": 0}
        if "Sequence number" in event.args:
            args["Fwd thread id"] = int(_BACKWARD.search(event.name) is not None)
        row = self._row(event, self.pid, self._tid(event.track), args | dict(event.args))
        if event.kind == "cuda_runtime":
            self._launch(row, None, event.launches)
            return
        for index, work in enumerate(event.launches):
            self._launch(row, self._call(event, index), (work,))

    def _call(self, event: Event, index: int) -> Event:
        """Return the runtime call inside an operator for its n-th launch: each has an equal part of it."""
        part_ns = (event.end_ns - event.start_ns) // (2 * len(event.launches) + 1)
        start_ns = event.start_ns + (2 * index + 1) * part_ns
        what = {"gpu_memcpy": "MemcpyAsync", "gpu_memset": "MemsetAsync"}.get(
            event.launches[index].kind, "LaunchKernel"
        )
        end_ns = start_ns + min(part_ns, MAX_LAUNCH_NS)
        return Event(event.track, "cuda_runtime", start_ns, end_ns, self.vendor + what)

    def _launch(self, row: Row, call: Event | None, works: tuple[Event, ...]) -> None:
        """Add a runtime call inside a row, unless the row is one itself, and the work it enqueues."""
        external = {key: value for key, value in row["args"].items() if key == "External id"}
        link = {"correlation": self._next("correlation")}
        if call is None:
            row["args"] = link | row["args"]
        else:
            row = self._row(call, self.pid, self._tid(call.track), external | link)
        for work in works:
            self._arrow("s", "ac2g", link["correlation"], row)
            self._arrow("f", "ac2g", link["correlation"], self._device(work, external | link))

    def _device(self, work: Event, args: Row) -> Row:
        stream, device = int(work.track.split()[1]), work.args.get("device", 0)
        place = {"device": device, "context": 1, "stream": stream}
        return self._row(work, device, stream, place | args | dict(work.args))

    def _arrow(self, end: str, name: str, number: int, at: Row) -> None:
        """Add one end of an arrow, at the start of a row."""
        row: Row = {"ph": end, "id": number, "pid": at["pid"], "tid": at["tid"], "ts": at["ts"]}
        self.rows.append(row | {"cat": name, "name": name} | ({"bp": "e"} if end == "f" else {}))

    def _backward_arrows(self) -> None:
        """Join the outermost backward with the innermost forward operator of each sequence number."""
        forward: dict[int, Row] = {}
        backward: dict[int, Row] = {}
        for row in self.rows:
            args = row.get("args", {})
            if "Sequence number" in args and args["Fwd thread id"]:
                backward.setdefault(args["Sequence number"], row)
            elif "Sequence number" in args:
                forward[args["Sequence number"]] = row
        for number in sorted(forward.keys() & backward.keys()):
            identity = self._next("fwdbwd")
            self._arrow("s", "fwdbwd", identity, forward[number])
            self._arrow("f", "fwdbwd", identity, backward[number])

    def _python_parents(self) -> None:
        """Number the Python frames of each thread and say which encloses which."""
        frames = [row for row in self.rows if row.get("cat") == "python_function"]
        frames.sort(key=lambda row: (row["tid"], row["ts"], -row["dur"]))
        modules: dict[str, int] = {}
        outer: list[Row] = []
        for number, row in enumerate(frames, 1):
            while outer and (outer[-1]["tid"] != row["tid"] or outer[-1]["ts"] + outer[-1]["dur"] <= row["ts"]):
                outer.pop()
            args = {"Python parent id": outer[-1]["args"]["Python id"] if outer else None, "Python id": number}
            if row["name"].startswith("nn.Module: "):
                args["Python module id"] = modules.setdefault(row["name"], len(modules))
            row["args"] = args | row["args"]
            outer.append(row)

    def _names(self, events: list[Event]) -> list[Row]:
        """Return the metadata rows that name the process, its threads and the streams."""
        devices = [(device["id"], {"labels": f"GPU {device['id']}"}) for device in self.sketch.devices]
        streams = sorted({event.track for host in events for event in (host, *host.launches) if " " in event.track})
        threads = {"main": "python", "backward": "pt_autograd_0"}
        return [
            _metadata("process_name", self.pid, 0, {"name": "python"}),
            _metadata("process_labels", self.pid, 0, {"labels": "CPU"}),
            *(_metadata("process_labels", index, 0, label) for index, label in devices),
            *(
                _metadata("thread_name", self.pid, tid, {"name": f"thread {tid} ({threads.get(track, track)})"})
                for track, tid in self.tids.items()
            ),
            *(
                _metadata("thread_name", 0, int(track.split()[1]), {"name": track})
                for track in streams
                if track.startswith("stream")
            ),
        ]

    def _distributed(self) -> Row:
        ranks = list(range(self.sketch.ranks))
        backend = "nccl" if self.sketch.devices else "gloo"
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": backend, "pg_size": len(ranks)}
        facts = {"backend": backend, "rank": self.rank, "world_size": len(ranks), "pg_count": 1}
        return {**facts, "pg_config": [{**group, "ranks": ranks}]}

    def _tid(self, track: str) -> int:
        return self.tids.setdefault(track, self.pid + len(self.tids))

    def _next(self, what: str) -> int:
        self.count[what] += 1
        return self.count[what]


def _metadata(name: str, pid: object, tid: int, args: Row) -> Row:
    return {"ph": "M", "name": name, "ts": _microseconds(FIRST_NS), "pid": pid, "tid": tid, "args": args}


def _microseconds(value_ns: int) -> float:
    """Return nanoseconds as decimal microseconds; exact, since 2**53 ns after the base is a hundred days."""
    return value_ns / 1000
