"""Traces of every version and vendor come out in one vocabulary."""

import gzip
import json
import random
import zipfile
from pathlib import Path

import pytest

from uncork import readers
from uncork.errors import UnreadableError
from uncork.events import EventTable, Kind, Track
from uncork.readers import kineto
from uncork.readers.source import Source
from uncork.recording import Device, Recording


def slice_of(
    name: str, cat: str | None, ts: object, dur: float, *, pid: object = 1, tid: object = 1, **args: object
) -> dict[str, object]:
    """Return a complete event."""
    event = {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}
    return event if cat is None else event | {"cat": cat}


def recordings_of(tmp_path: Path, document: object, name: str = "trace.json") -> list[Recording]:
    """Return what is read from a document."""
    path = tmp_path / name
    path.write_text(json.dumps(document))
    return readers.read(path)


def events_of(tmp_path: Path, document: object) -> EventTable:
    """Return the events of a document of one rank."""
    (recording,) = recordings_of(tmp_path, document)
    assert recording.events is not None
    return recording.events


@pytest.mark.parametrize(
    ("cat", "kind"),
    [
        ("Operator", Kind.CPU_OP),
        ("cpu_op", Kind.CPU_OP),
        ("user_annotation", Kind.USER_ANNOTATION),
        ("python_function", Kind.PYTHON_FUNCTION),
        ("Runtime", Kind.RUNTIME),
        ("cuda_driver", Kind.RUNTIME),
        ("mtia_runtime", Kind.RUNTIME),
        ("xpu_runtime", Kind.RUNTIME),
        ("privateuse1_runtime", Kind.RUNTIME),
        ("Kernel", Kind.KERNEL),
        ("mtia_ccp_events", Kind.KERNEL),
        ("Memcpy", Kind.GPU_MEMCPY),
        ("gpu_memset", Kind.GPU_MEMSET),
        ("gpu_user_annotation", Kind.GPU_USER_ANNOTATION),
        ("cuda_sync", Kind.SYNC),
        ("overhead", Kind.OVERHEAD),
        ("Trace", Kind.OTHER),
        ("something new", Kind.OTHER),
    ],
)
def test_categories(tmp_path: Path, cat: str, kind: Kind) -> None:
    """Each category of each version has its kind; a new one is OTHER."""
    events = events_of(tmp_path, [slice_of("x", cat, 1, 1), slice_of("aten::mm", "cpu_op", 2, 1)])
    assert events.kind.tolist() == [kind, Kind.CPU_OP]


def test_old_versions_write_regions_as_operators(tmp_path: Path) -> None:
    """Under the category Operator of torch 1.8, steps and optimizers are regions and memory is an instant."""
    document = [
        slice_of("ProfilerStep#3", "Operator", 1, 9),
        slice_of("Optimizer.step#SGD.step", "Operator", 2, 1),
        slice_of("aten::mm", "Operator", 3, 1, tid="1", **{"Input dims": [[2, 2]], "external id": 4}),
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 4, "args": {"Bytes": 64}},
        {"ph": "i", "s": "g", "name": "Iteration Start", "pid": "Traces", "tid": "x", "ts": 0},
    ]
    events = events_of(tmp_path, document)
    assert events.kind.tolist() == [Kind.USER_ANNOTATION, Kind.USER_ANNOTATION, Kind.CPU_OP, Kind.MEMORY, Kind.OTHER]
    assert events.arg(2, "Input Dims") == [[2, 2]]
    assert events.ints("External id").tolist() == [-1, -1, 4, -1, -1]
    assert events.ints("Bytes")[3] == 64
    assert events.tracks == (Track("1", "1"), Track("Traces", "x"))
    assert events.track.tolist() == [0, 0, 0, 0, 1]


def test_legacy_lists(tmp_path: Path) -> None:
    """The legacy autograd profiler's list tells host from device by the process."""
    document = [
        slice_of("add", None, 101.5, 134.4, pid="CPU functions"),
        slice_of("vector_add", None, 150, 3, pid="CUDA functions", tid=0),
        {"name": "add", "ph": "f", "ts": 150, "tid": 0, "pid": "CUDA functions", "id": 9, "cat": "cpu_to_cuda"},
    ]
    (recording,) = recordings_of(tmp_path, document)
    assert recording.format == "legacy"
    assert recording.events is not None
    assert recording.events.kind.tolist() == [Kind.CPU_OP, Kind.KERNEL, Kind.FLOW_END]
    assert recording.events.names([2]) == ["ac2g"]
    assert recording.events.ints("@id").tolist() == [-1, -1, 9]


def test_ascend(tmp_path: Path) -> None:
    """On Ascend the process names tell CANN calls from device work; connection_id joins them."""
    document = [
        {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "args": {"name": "CANN"}},
        {"ph": "M", "name": "process_name", "pid": 8, "tid": 0, "args": {"name": "Ascend Hardware"}},
        {"ph": "M", "name": "thread_name", "pid": 8, "tid": 3, "args": {"name": "Stream 3"}},
        {"ph": "M", "name": "process_name", "pid": 99, "tid": 0, "args": {"name": "Overlap Analysis"}},
        slice_of("aten::add", "cpu_op", "1704161511420306.491", 20),
        slice_of("AscendCL@aclnnAdd", None, "1704161511420310.000", 5, pid=10, connection_id=7),
        slice_of("Add", None, "1704161511420312.5", 2, pid=8, tid=3, **{"Task Type": "AI_CORE", "connection_id": 7}),
        slice_of("wait", None, "1704161511420315", 2, pid=8, tid=3, **{"Task Type": "EVENT_WAIT"}),
        slice_of("Computing", None, "1704161511420312.5", 2, pid=99),
    ]
    (recording,) = recordings_of(tmp_path, document)
    events = recording.events
    assert events is not None
    assert recording.format == "ascend"
    assert recording.repairs == {}
    assert events.kind.tolist() == [Kind.CPU_OP, Kind.RUNTIME, Kind.KERNEL, Kind.SYNC, Kind.OTHER]
    assert events.ts_ns[0] == 1704161511420306491
    assert events.ints("correlation").tolist() == [-1, 7, 7, -1, -1]
    assert events.tracks[events.track[2]] == Track("8", "3", "Stream 3")


def test_begin_and_end_make_one_slice(tmp_path: Path) -> None:
    """B and E of a thread are paired inside out; what has no partner is left out and counted."""
    document = [
        {"ph": "B", "cat": "cpu_op", "name": "outer", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "B", "cat": "cpu_op", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "B", "cat": "cpu_op", "name": "other thread", "pid": 1, "tid": 2, "ts": 3},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
        {"ph": "E", "pid": 1, "tid": 3, "ts": 9},
    ]
    (recording,) = recordings_of(tmp_path, document)
    events = recording.events
    assert events is not None
    assert events.names([0, 1]) == ["outer", "inner"]
    assert events.dur_ns.tolist() == [8000, 3000]
    assert recording.repairs == {"unpaired": 2}


def test_ends_with_names_close_what_they_name(tmp_path: Path) -> None:
    """Two that begin at once, written inside out, or end at once: each end closes the beginning of its own name."""
    document = [
        {"ph": "B", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "B", "cat": "user_annotation", "name": "step", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "E", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 3},
        {"ph": "B", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 4},
        {"ph": "E", "name": "step", "pid": 1, "tid": 1, "ts": 9},
        {"ph": "E", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 9},
        {"ph": "B", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 10},
        {"ph": "E", "name": "renamed", "pid": 1, "tid": 1, "ts": 12},
    ]
    (recording,) = recordings_of(tmp_path, document)
    events = recording.events
    assert events is not None
    assert list(zip(events.names(range(4)), events.dur_ns.tolist(), strict=True)) == [
        ("aten::mm", 2000),
        ("step", 8000),
        ("aten::mm", 5000),
        ("aten::add", 2000),
    ]
    assert recording.repairs == {}


def test_flows_are_named_by_category(tmp_path: Path) -> None:
    """Both ends of an arrow carry its category in its newest spelling and the id that joins them."""
    document = [
        slice_of("aten::mm", "cpu_op", 1, 1),
        {"ph": "s", "id": 5, "pid": 1, "tid": 1, "ts": 1, "cat": "async", "name": "launch"},
        {"ph": "f", "id": 5, "pid": 0, "tid": "stream 7", "ts": 2, "cat": "async", "name": "launch", "bp": "e"},
        {"ph": "s", "id": 6, "pid": 1, "tid": 1, "ts": 1, "cat": "fwdbwd", "name": "fwdbwd"},
    ]
    events = events_of(tmp_path, document)
    assert events.kind.tolist() == [Kind.CPU_OP, Kind.FLOW_START, Kind.FLOW_END, Kind.FLOW_START]
    assert events.names(range(4)) == ["aten::mm", "ac2g", "ac2g", "fwdbwd"]
    assert events.ints("@id").tolist() == [-1, 5, 5, 6]
    assert events.arg(2, "@bp") == "e"


HEADER = {
    "schemaVersion": 1,
    "deviceProperties": [
        {"id": 1, "name": "NVIDIA H100", "totalGlobalMem": 85, "computeMajor": 9, "computeMinor": 0, "numSms": 132}
    ],
    "record_shapes": 1,
    "cuda_runtime_version": 12040,
    "baseTimeNanoseconds": 10**18,
    "distributedInfo": {
        "rank": 3,
        "world_size": 8,
        "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1, 2, 3]}],
    },
}


def test_header(tmp_path: Path) -> None:
    """Devices, flags, versions, rank, groups and the base time come from the header."""
    (recording,) = recordings_of(tmp_path, HEADER | {"traceEvents": [slice_of("aten::mm", "cpu_op", 1.5, 2)]})
    assert recording.devices == (Device(1, "NVIDIA H100", 85, (9, 0), 132),)
    assert (recording.rank, recording.world_size) == (3, 8)
    assert recording.groups == {"0": (0, 1, 2, 3)}
    assert recording.versions == {"cuda": "12.4"}
    assert recording.flags.shapes is True
    assert recording.flags.stacks is False
    assert recording.events is not None
    assert recording.events.ts_ns.tolist() == [10**18 + 1500]


def test_hip_devices_have_no_compute_capability(tmp_path: Path) -> None:
    """AMD's major and minor are no compute capability of NVIDIA's kind."""
    header = {
        "hip_runtime_version": 60443483,
        "deviceProperties": [{"id": 0, "name": "MI300X", "computeMajor": 9, "computeMinor": 4}],
    }
    (recording,) = recordings_of(tmp_path, header | {"traceEvents": [slice_of("aten::mm", "cpu_op", 1, 2)]})
    assert recording.devices == (Device(0, "MI300X"),)
    assert recording.versions == {"hip": "6.4.43483"}


def test_rank_from_the_file_name(tmp_path: Path) -> None:
    """Without a word in the header the file's name gives the rank."""
    (recording,) = recordings_of(tmp_path, [slice_of("aten::mm", "cpu_op", 1, 2)], "job-rank12.pt.trace.json")
    assert recording.rank == 12


def test_merged_ranks_become_recordings(tmp_path: Path) -> None:
    """A file whose events name their rank holds one recording per rank."""
    document = [slice_of(f"aten::op{i}", "cpu_op", i, 1, rank=i % 2) for i in range(6)]
    first, second = recordings_of(tmp_path, {"traceEvents": document})
    assert (first.rank, second.rank) == (0, 1)
    assert first.events is not None
    assert second.events is not None
    assert first.events.names(range(3)) == ["aten::op0", "aten::op2", "aten::op4"]
    assert second.events.ints("rank").tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "packing", ["plain", "gzip", "zip", "zip of gzip", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "cut gzip"]
)
def test_packing_is_told_by_content(tmp_path: Path, packing: str) -> None:
    """However the same trace is packed and whatever its name, the same events are read."""
    text = "\n" + json.dumps({"traceEvents": [slice_of(f"aten::op{i}", "cpu_op", i, 1) for i in range(5000)]})
    path = tmp_path / "trace.odd"
    if packing == "plain":
        path.write_text(text)
    elif packing == "gzip":
        path.write_bytes(gzip.compress(text.encode()))
    elif packing == "cut gzip":
        whole = gzip.compress(text.encode())
        path.write_bytes(whole[: len(whole) // 2])
    elif packing.startswith("utf"):
        path.write_text(text, packing)
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("../up/trace.json", gzip.compress(text.encode()) if packing == "zip of gzip" else text)
    (recording,) = readers.read(path)
    assert recording.events is not None
    if packing == "cut gzip":
        assert 2000 < len(recording.events) < 3000
        assert recording.repairs == {"cut_file": 1}
    else:
        assert len(recording.events) == 5000
        assert recording.repairs == {}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_wide_text_read_a_byte_at_a_time(tmp_path: Path, encoding: str) -> None:
    """A piece that ends inside a character is no end."""
    path = tmp_path / "trace"
    path.write_text("[" + " " * 70_000 + '"\U0001f525"]', encoding)
    with Source(path) as source:
        text = b"".join(iter(lambda: source.read(1), b""))
    assert json.loads(text) == ["\U0001f525"]


def test_zstd(tmp_path: Path) -> None:
    """Traces packed with zstd are read where the extra is installed."""
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "trace"
    path.write_bytes(zstandard.compress(json.dumps([slice_of("aten::mm", "cpu_op", 1, 2)]).encode()))
    (recording,) = readers.read(path)
    assert recording.events is not None
    assert len(recording.events) == 1


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to hundreds of times its size stops early."""
    monkeypatch.setattr("uncork.readers.source._BOMB_FLOOR_BYTES", 1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"[" + b" " * (64 << 20)))
    with pytest.raises(UnreadableError, match="unpacks to more than"):
        readers.read(path)


def test_readers_are_found_by_looking() -> None:
    """The trace reader is among the readers, each with its two functions."""
    assert kineto in readers.READERS
    assert all(callable(reader.claims) and callable(reader.read) for reader in readers.READERS)


def test_expand(tmp_path: Path) -> None:
    """Folders, patterns and TensorBoard logs stand for the traces in them, in the order of ranks."""
    for rank in (10, 2):
        (tmp_path / f"rank{rank}.json").write_text("[]")
    assert [path.name for path in readers.expand([tmp_path])] == ["rank2.json", "rank10.json"]
    assert [path.name for path in readers.expand([tmp_path / "rank*.json"])] == ["rank2.json", "rank10.json"]
    log = tmp_path / "log"
    log.mkdir()
    (log / "host_1.123.pt.trace.json.gz").write_text("")
    (log / "notes.json").write_text("")
    assert [path.name for path in readers.expand([log])] == ["host_1.123.pt.trace.json.gz"]
    with pytest.raises(UnreadableError, match="is not there"):
        readers.expand([tmp_path / "nothing"])


def test_a_folder_of_ascend_is_one_recording_per_rank(tmp_path: Path) -> None:
    """torch_npu's folder holds parts of the trace a second time; the rank stands in a file's name beside it."""
    for rank in (1, 0):
        home = tmp_path / f"node_{7 - rank}_20240102_ascend_pt"
        for name in (
            "ASCEND_PROFILER_OUTPUT/trace_view.json",
            "ASCEND_PROFILER_OUTPUT/communication.json",
            "PROF_01/mindstudio_profiler_output/msprof_2024.json",
            f"profiler_info_{rank}.json",
        ):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(json.dumps([slice_of("aten::mm", "cpu_op", "5.5", 3)]))
    paths = readers.expand([tmp_path])
    assert [path.name for path in paths] == ["trace_view.json"] * 2
    assert sorted(readers.read(path)[0].rank or 0 for path in paths) == [0, 1]
    (alone,) = readers.read(paths[0].rename(tmp_path / "trace_view.json"))
    assert alone.rank is None


def test_settings_beside_traces_are_no_recordings(tmp_path: Path) -> None:
    """A folder's traces are read without the sound JSON beside them; what may be a broken trace is not passed over."""
    texts = {"a.json": '{"traceEvents": []}', "b.json": "[]", "config.json": '{"lr": 1}', "cut.json": '{"deviceProp'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-16" if name == "a.json" else "utf-8")
    assert [path.name for path in readers.expand([tmp_path])] == ["a.json", "b.json", "cut.json"]
    for name in ("a.json", "b.json", "cut.json"):
        (tmp_path / name).unlink()
    assert [path.name for path in readers.expand([tmp_path])] == ["config.json"]  # so that it is named


@pytest.mark.parametrize("packing", ["gzip", "zip", "zstd"])
def test_damaged_packing_ends_cleanly(tmp_path: Path, packing: str) -> None:
    """Bits flipped or bytes cut anywhere in a packed trace give what is left of it, or one clear line."""
    text = json.dumps([slice_of(f"aten::op{i}", "cpu_op", i, 1) for i in range(3000)]).encode()
    path = tmp_path / "trace"
    if packing == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("trace.json", text)
        packed = path.read_bytes()
    else:
        packed = gzip.compress(text) if packing == "gzip" else pytest.importorskip("zstandard").compress(text)
    dice = random.Random(7)
    for _ in range(60):
        damaged = bytearray(packed)
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged[: dice.randrange(len(damaged))] if dice.random() < 0.3 else damaged)
        try:
            (recording,) = readers.read(path)
        except UnreadableError:
            continue
        assert recording.events is not None
        assert len(recording.events) <= 3000
