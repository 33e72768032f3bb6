"""Sketches: each line becomes what a profiler would have written."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from uncork.testing import SketchError, examples, sketch, traces, write_traces
from uncork.testing.kineto import BASE_NS, FIRST_NS

ORIGIN_US = FIRST_NS / 1000


def only(text: str) -> list[dict[str, Any]]:
    """Return the events of a sketch with one rank, without the metadata rows."""
    (document,) = traces(text)
    return [row for row in document["traceEvents"] if row["ph"] != "M"]


def test_an_operator_launches_its_kernel_through_a_runtime_call():
    """The call lies inside the operator and shares correlation and external id with the kernel; an arrow joins them."""
    op, call, start, kernel, end = only("main 6ms..6.5ms aten::mm -> stream 7 7ms..9ms gemm")
    assert (op["cat"], op["ts"] - ORIGIN_US, op["dur"]) == ("cpu_op", 6000, 500)
    assert (call["cat"], call["name"]) == ("cuda_runtime", "cudaLaunchKernel")
    assert op["ts"] <= call["ts"]
    assert call["ts"] + call["dur"] <= op["ts"] + op["dur"]
    assert (kernel["cat"], kernel["pid"], kernel["tid"]) == ("kernel", 0, 7)
    assert (kernel["ts"] - ORIGIN_US, kernel["dur"]) == (7000, 2000)
    assert call["args"]["correlation"] == kernel["args"]["correlation"] == start["id"] == end["id"]
    assert op["args"]["External id"] == call["args"]["External id"] == kernel["args"]["External id"]
    assert (start["ph"], start["ts"], end["ph"], end["ts"]) == ("s", call["ts"], "f", kernel["ts"])


def test_a_line_may_launch_several_and_a_runtime_call_is_its_own_launch():
    """Two kernels have two calls; a copy is launched by the copy call; a written call gets no second one."""
    rows = only("main 0us..90us aten::a -> stream 7 100us..110us k1 -> stream 7 110us..120us Memcpy HtoD (P -> D)")
    calls = [row for row in rows if row["cat"] == "cuda_runtime"]
    assert [call["name"] for call in calls] == ["cudaLaunchKernel", "cudaMemcpyAsync"]
    assert calls[0]["ts"] + calls[0]["dur"] <= calls[1]["ts"]
    assert [row["cat"] for row in rows if row["pid"] == 0 and row["ph"] == "X"] == ["kernel", "gpu_memcpy"]
    rows = only("main 0us..9us cudaLaunchKernel -> stream 7 10us..20us k")
    assert [row["name"] for row in rows if row["ph"] == "X"] == ["cudaLaunchKernel", "k"]


def test_amd_devices_have_hip_calls():
    """The runtime's names are the vendor's."""
    rows = only("device AMD Instinct MI300X\nmain 0us..9us aten::a -> stream 3 10us..20us k")
    assert rows[1]["name"] == "hipLaunchKernel"


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("main 0ms..1ms aten::mm", "cpu_op"),
        ("main 0ms..1ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation"),
        ("main 0ms..1ms Optimizer.step#SGD.step", "user_annotation"),
        ("main 0ms..1ms cudaStreamSynchronize", "cuda_runtime"),
        ("main 0ms..1ms cuLaunchKernel", "cuda_runtime"),
        ("main 0ms..1ms train.py(12): step", "python_function"),
        ("main 0ms..1ms nn.Module: Linear_0", "python_function"),
        ("main region 0ms..1ms load", "user_annotation"),
        ("main overhead 0ms..1ms Buffer Flush", "overhead"),
        ("main 0ms [memory]", "cpu_instant_event"),
        ("stream 7 0ms..1ms gemm", "kernel"),
        ("stream 7 0ms..1ms Memset (Device)", "gpu_memset"),
        ("stream 7 region 0ms..1ms ProfilerStep#1", "gpu_user_annotation"),
        ("stream 7 sync 0ms..1ms Stream Sync", "cuda_sync"),
    ],
)
def test_the_kind_follows_from_the_name_or_the_word(line: str, category: str):
    """Names are the profiler's own, so they say what they are; a word decides the rest."""
    assert [row["cat"] for row in only(line)] == [category]


def test_steps_repeat_their_lines_and_mark_themselves():
    """Two steps of 10 ms: annotations on the main thread, lines shifted, sequence numbers moved on."""
    rows = only('steps 2 x 10ms\n  main 1ms..2ms aten::mm {"Sequence number": 7}\nonce\n  main 0ms..1ms end')
    assert [(row["name"], row["ts"] - ORIGIN_US) for row in rows] == [
        ("ProfilerStep#1", 0),
        ("aten::mm", 1000),
        ("ProfilerStep#2", 10000),
        ("aten::mm", 11000),
        ("end", 20000),
    ]
    assert [row["args"].get("Sequence number") for row in rows] == [None, 1007, None, 2007, None]


def test_unmarked_steps_leave_the_annotation_out():
    """A loop that nobody marked."""
    assert [row["name"] for row in only("steps 2 x 1ms unmarked\nmain 0us..1us aten::a")] == ["aten::a", "aten::a"]


def test_a_line_repeats_within_a_step_with_what_it_launches():
    """Three times every 20 µs, kernels too."""
    rows = only("main 0us..5us x3 every 20us aten::add -> stream 7 6us..8us k")
    starts = {name: [row["ts"] - ORIGIN_US for row in rows if row["name"] == name] for name in ("aten::add", "k")}
    assert starts == {"aten::add": [0, 20, 40], "k": [6, 26, 46]}


def test_forward_and_backward_are_joined_by_sequence_number():
    """The arrow leads from the forward operator to autograd's node on its own thread."""
    rows = only(
        'main 0ms..1ms aten::mm {"Sequence number": 7}\n'
        'backward 2ms..3ms autograd::engine::evaluate_function: MmBackward0 {"Sequence number": 7}\n'
        'backward 2.1ms..2.9ms MmBackward0 {"Sequence number": 7}'
    )
    assert [row["args"]["Fwd thread id"] for row in rows[:3]] == [0, 1, 1]
    start, end = rows[3:]
    assert (start["cat"], start["ph"], start["ts"], start["tid"]) == ("fwdbwd", "s", rows[0]["ts"], rows[0]["tid"])
    assert (end["cat"], end["ph"], end["ts"], end["tid"]) == ("fwdbwd", "f", rows[1]["ts"], rows[1]["tid"])
    assert rows[0]["tid"] != rows[1]["tid"]


def test_python_frames_know_who_encloses_them():
    """Parents are by time on the same thread; a frame that begins as another ends is its sibling."""
    rows = only(
        "main 0ms..9ms a.py(1): a\nmain 1ms..2ms b.py(1): b\nmain 2ms..3ms nn.Module: C_0\nthread x 1ms..2ms d.py(1): d"
    )
    identity = {row["name"]: row["args"]["Python id"] for row in rows}
    parents = {row["name"]: row["args"]["Python parent id"] for row in rows}
    top = identity["a.py(1): a"]
    assert parents == {"a.py(1): a": None, "b.py(1): b": top, "nn.Module: C_0": top, "d.py(1): d": None}
    assert rows[2]["args"]["Python module id"] == 0


def test_ranks_differ_only_in_their_own_lines():
    """Each rank is a recording that says which it is."""
    first, second = traces("ranks 2\nmain 0ms..1ms aten::a\nrank 1: main 1ms..2ms aten::b")
    assert [row["name"] for row in first["traceEvents"] if row["ph"] == "X"] == ["aten::a"]
    assert [row["name"] for row in second["traceEvents"] if row["ph"] == "X"] == ["aten::a", "aten::b"]
    assert (second["distributedInfo"]["rank"], second["distributedInfo"]["world_size"]) == (1, 2)


def test_the_head_says_what_was_recorded():
    """Devices, flags, and any other field; remarks are left out; braces in kernel names are names."""
    (document,) = traces(
        'device Tesla T4 {"numSms": 40}   # a small one\nwith shapes stacks\ntrace {"cuda_runtime_version": 12080}\n'
        'stream 7 0us..1us void f<{lambda()#1}>(int) {"grid": [1, 2, 3]}'
    )
    assert document["deviceProperties"] == [{"id": 0, "name": "Tesla T4", "numSms": 40}]
    assert (document["record_shapes"], document["with_stack"], document["cuda_runtime_version"]) == (1, 1, 12080)
    kernel = document["traceEvents"][-1]
    assert (kernel["name"], kernel["args"]["grid"]) == ("void f<{lambda()#1}>(int)", [1, 2, 3])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("main 5ms..4ms aten::a", "ends before it starts"),
        ("main 5ms..6ms aten::a -> stream 7 4ms..5ms k", "starts before its launch"),
        ("main 5..6 aten::a", "TRACK START..END NAME"),
        ("steps four", "steps 4 x 10ms"),
        ("main 0ms..1ms aten::a -> stream 7 k", "-> stream N START..END NAME"),
        ('main 0ms..1ms aten::a {"x": }', "line 2"),
    ],
)
def test_a_line_that_cannot_be_is_refused_with_its_number(line: str, says: str):
    """The message says which line, and how it should be written."""
    with pytest.raises(SketchError, match="line 2 of the sketch") as refused:
        traces(f"device T4\n{line}")
    assert says in str(refused.value)


def test_files_hold_the_documents(tmp_path: Path):
    """Plain or gzip, one per rank, the same content."""
    text = "ranks 2\nmain 0ms..1ms aten::a"
    plain = write_traces(text, tmp_path)
    packed = write_traces(text, tmp_path, compress=True)
    assert [path.name for path in packed] == ["rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz"]
    assert [json.loads(path.read_bytes()) for path in plain] == traces(text)
    assert [json.loads(gzip.decompress(path.read_bytes())) for path in packed] == traces(text)


def test_a_sketch_is_read_back_as_recordings_with_exact_times():
    """Through the reader of real files: nanoseconds survive, ranks and devices are known."""
    first, second = sketch("device Tesla T4\nranks 2\nmain 1.000001ms..2ms aten::mm -> stream 7 3ms..4ms gemm")
    assert (first.rank, second.rank, second.world_size) == (0, 1, 2)
    assert first.devices[0].name == "Tesla T4"
    assert first.events is not None
    row = int(first.events.name_is("aten::mm").nonzero()[0][0])
    assert first.events.ts_ns[row] == BASE_NS + FIRST_NS + 1_000_001
    assert first.events.dur_ns[row] == 999_999


def test_what_the_recorder_knows_is_added():
    """Loader times, settings, windows and functions go where `uncork run` puts them."""
    (recording,) = sketch(
        "setting num_workers 0\nsetting optimizer AdamW\nwindow baseline 3 x 9ms\n"
        "function data.py:7 load 40 x 5ms 6ms\n"
        'steps 2 x 10ms\nloader 0ms..4ms fetch {"value": 32}\nloader 1 0ms..3ms collate\nmain 5ms..6ms aten::a'
    )
    assert recording.run is not None
    assert recording.run.settings == {"num_workers": 0, "optimizer": "AdamW"}
    assert [(window.name, window.step_ns) for window in recording.run.windows] == [("baseline", (9_000_000,) * 3)]
    assert recording.functions is not None
    assert (recording.functions.file, recording.functions.line.tolist()) == (("data.py",), [7])
    assert (recording.functions.self_ns.tolist(), recording.functions.total_ns.tolist()) == ([5_000_000], [6_000_000])
    spans = recording.loader
    assert spans is not None
    assert [spans.stages[stage] for stage in spans.stage] == ["fetch", "collate", "fetch", "collate"]
    assert spans.worker.tolist() == [-1, 1, -1, 1]
    assert (spans.start_ns - BASE_NS - FIRST_NS).tolist() == [0, 0, 10_000_000, 10_000_000]
    assert spans.dur_ns.tolist() == [4_000_000, 3_000_000, 4_000_000, 3_000_000]
    assert spans.value.tolist() == [32, 0, 32, 0]


PAGE = """## Examples

### found
Words about it.

```sketch
main 0ms..1ms aten::a
```

```expect
location.line 12
share 0.6
verdict.bottleneck data_loading
```

### not assessed

```sketch
main 0ms..1ms aten::b
```

## After
```sketch
not an example
```
"""


def test_examples_are_read_from_a_page():
    """Each stands under its outcome; expected values are JSON where they can be; the section ends them."""
    found, silent = examples(PAGE)
    assert (found.outcome, found.sketch) == ("found", "main 0ms..1ms aten::a\n")
    assert found.expect == (("location.line", 12), ("share", 0.6), ("verdict.bottleneck", "data_loading"))
    assert (silent.outcome, silent.expect) == ("not assessed", ())
