"""A sketch as Kineto documents, one per rank, in the form that torch 2.13 writes."""

import gzip
import json
from collections import Counter
from pathlib import Path

from uncork.testing.sketch import Event, Sketch, read_sketch

BASE_NS = 1_700_000_000_000_000_000
"""``baseTimeNanoseconds``: times in the file are decimal microseconds after it."""
FIRST_NS = 1_000_000_000
"""When a recording begins, after the base."""
MAX_LAUNCH_NS = 5_000
"""A launch takes a few microseconds on the host, or its share of a shorter operator."""


def traces(text: str) -> list[dict[str, object]]:
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
        self.rows: list[dict[str, object]] = []
        self.count: Counter[str] = Counter()
        amd = any(str(device["name"]).startswith("AMD") for device in sketch.devices)
        self.vendor = "hip" if amd else "cuda"

    def build(self) -> dict[str, object]:
        """Return the document."""
        events = list(self.sketch.events(self.rank))
        for event in events:
            if event.track.startswith("stream"):
                self._device(event, None, None)
            elif event.kind != "loader":
                self._host(event)
        self._backward_arrows()
        self._python_parents()
        document: dict[str, object] = {"schemaVersion": 1, "deviceProperties": self.sketch.devices}
        document |= self.sketch.fields
        if self.sketch.ranks > 1:
            document["distributedInfo"] = self._distributed()
        document |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": BASE_NS}
        document["traceEvents"] = [*self._names(events), *self.rows]
        return document

    def _row(self, event: Event, pid: int, tid: int, args: dict[str, object]) -> dict[str, object]:
        row: dict[str, object] = {"ph": "X", "cat": event.kind, "name": event.name, "pid": pid, "tid": tid}
        row["ts"] = _microseconds(FIRST_NS + event.start_ns)
        if event.kind == "cpu_instant_event":
            row |= {"ph": "i", "s": "t"}
        else:
            row["dur"] = _microseconds(event.end_ns - event.start_ns)
        row["args"] = args
        self.rows.append(row)
        return row

    def _host(self, event: Event) -> None:
        args: dict[str, object] = {}
        if event.kind in ("cpu_op", "user_annotation"):
            args = {"External id": self._next("external"), "Record function id": 0}
        if "Sequence number" in event.args:
            args["Fwd thread id"] = int(event.name.startswith("autograd::engine::evaluate_function"))
        row = self._row(event, self.pid, self._tid(event.track), args | dict(event.args))
        if event.kind == "cuda_runtime":
            self._launch(row, event, event, event.launches)
            return
        for index, work in enumerate(event.launches):
            self._launch(row, event, self._call(event, index), (work,))

    def _call(self, event: Event, index: int) -> Event:
        """Return the runtime call inside an operator for its n-th launch: each has an equal part of it."""
        part_ns = (event.end_ns - event.start_ns) // (2 * len(event.launches) + 1)
        start_ns = event.start_ns + (2 * index + 1) * part_ns
        what = {"gpu_memcpy": "MemcpyAsync", "gpu_memset": "MemsetAsync"}.get(
            event.launches[index].kind, "LaunchKernel"
        )
        end_ns = start_ns + min(part_ns, MAX_LAUNCH_NS)
        return Event(event.track, "cuda_runtime", start_ns, end_ns, self.vendor + what)

    def _launch(self, row: dict[str, object], event: Event, call: Event, works: tuple[Event, ...]) -> None:
        """Add a runtime call, unless the line is one itself, and the work it enqueues."""
        external = row["args"].get("External id")  # type: ignore[attr-defined]
        correlation = self._next("correlation")
        args: dict[str, object] = {"External id": external} if external else {}
        if call is event:
            row["args"] = {"correlation": correlation, **row["args"]}  # type: ignore[dict-item]
        else:
            self._row(call, self.pid, self._tid(call.track), args | {"correlation": correlation})
        for work in works:
            self._arrow("s", "ac2g", correlation, self.pid, self._tid(call.track), call.start_ns)
            self._device(work, correlation, external)

    def _device(self, work: Event, correlation: int | None, external: object) -> None:
        stream = int(work.track.split()[1])
        device = int(str(work.args.get("device", 0)))
        args: dict[str, object] = {"External id": external} if external else {}
        args |= {"device": device, "context": 1, "stream": stream}
        if correlation is not None:
            args["correlation"] = correlation
        self._row(work, device, stream, args | dict(work.args))
        if correlation is not None:
            self._arrow("f", "ac2g", correlation, device, stream, work.start_ns)

    def _arrow(
        self, end: str, name: str, number: int, pid: object, tid: object, ns: int | None, ts: object = 0
    ) -> None:
        when = ts if ns is None else _microseconds(FIRST_NS + ns)
        row: dict[str, object] = {
            "ph": end,
            "id": number,
            "pid": pid,
            "tid": tid,
            "ts": when,
            "cat": name,
            "name": name,
        }
        self.rows.append(row | ({"bp": "e"} if end == "f" else {}))

    def _backward_arrows(self) -> None:
        """Join each backward operator with the last forward operator of the same sequence number."""
        forward: dict[object, dict[str, object]] = {}
        backward: dict[object, dict[str, object]] = {}
        for row in self.rows:
            args = row.get("args", {})
            if isinstance(args, dict) and "Sequence number" in args:
                (backward if args["Fwd thread id"] else forward)[args["Sequence number"]] = row
        for number in sorted(forward.keys() & backward.keys(), key=str):
            identity = self._next("fwdbwd")
            for end, row in (("s", forward[number]), ("f", backward[number])):
                self._arrow(end, "fwdbwd", identity, row["pid"], row["tid"], None, row["ts"])

    def _python_parents(self) -> None:
        """Number the Python frames of each thread and say which encloses which."""
        frames = [row for row in self.rows if row.get("cat") == "python_function"]
        frames.sort(key=lambda row: (row["tid"], row["ts"], -float(str(row["dur"]))))
        modules: dict[object, int] = {}
        open_frames: list[tuple[object, float, int]] = []
        for number, row in enumerate(frames, 1):
            start = float(str(row["ts"]))
            while open_frames and (open_frames[-1][0] != row["tid"] or open_frames[-1][1] <= start):
                open_frames.pop()
            args: dict[str, object] = {"Python parent id": open_frames[-1][2] if open_frames else None}
            if str(row["name"]).startswith("nn.Module: "):
                args["Python module id"] = modules.setdefault(row["name"], len(modules))
            row["args"] = {**args, "Python id": number, **row["args"]}  # type: ignore[dict-item]
            open_frames.append((row["tid"], start + float(str(row["dur"])), number))

    def _names(self, events: list[Event]) -> list[dict[str, object]]:
        """Return the metadata rows that name the process, its threads and the streams."""
        rows = [_metadata("process_name", self.pid, 0, {"name": "python"})]
        rows.append(_metadata("process_labels", self.pid, 0, {"labels": "CPU"}))
        for device in self.sketch.devices:
            rows.append(_metadata("process_labels", device["id"], 0, {"labels": f"GPU {device['id']}"}))
        for track, tid in self.tids.items():
            name = {"main": "python", "backward": "pt_autograd_0"}.get(track, track.removeprefix("thread "))
            rows.append(_metadata("thread_name", self.pid, tid, {"name": f"thread {tid} ({name})"}))
        tracks = {event.track for outer in events for event in (outer, *outer.launches)}
        for track in sorted(tracks):
            if track.startswith("stream"):
                rows.append(_metadata("thread_name", 0, int(track.split()[1]), {"name": track}))
        return rows

    def _distributed(self) -> dict[str, object]:
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


def _metadata(name: str, pid: object, tid: int, args: dict[str, object]) -> dict[str, object]:
    return {"ph": "M", "name": name, "ts": _microseconds(FIRST_NS), "pid": pid, "tid": tid, "args": args}


def _microseconds(value_ns: int) -> float:
    """Return nanoseconds as decimal microseconds; exact, since 2**53 ns after the base is a hundred days."""
    return value_ns / 1000
