"""The whole way, whatever the recording: the ledger adds up, order does not matter, nothing is lost in JSON."""

import json
import random
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from uncork import readers, report
from uncork.compare import compare
from uncork.findings import Bottleneck
from uncork.measure import measure
from uncork.measure.step_ledger import StepLedger
from uncork.pipeline import analyze, analyze_recordings
from uncork.report import Report
from uncork.testing import sketch, traces, write_traces

STEP_US = 1000
SURE = 0.8
"""Confidence from here on is a promise (`bench/accuracy`)."""
HOST = (
    "aten::mm", "aten::copy_", "aten::add", "cudaStreamSynchronize", "cudaMalloc", "train.py(3): step",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Optimizer.step#SGD.step",
    "autograd::engine::evaluate_function: MmBackward0",
)  # fmt: skip
DEVICE = (
    "gemm",
    "vectorized_elementwise_kernel",
    "ncclDevKernel_AllReduce_Sum_f32",
    "Memcpy HtoD (Pageable -> Device)",
)


@st.composite
def lines(draw: st.DrawFn, names: tuple[str, ...], tracks: tuple[str, ...]) -> str:
    """Return one line of a sketch, anywhere in a step, over its end too."""
    start, length = draw(st.integers(0, STEP_US - 1)), draw(st.integers(0, 600))
    return f"  {draw(st.sampled_from(tracks))} {start}us..{start + length}us {draw(st.sampled_from(names))}"


@st.composite
def sketches(draw: st.DrawFn, *, ranks: int = 1) -> str:
    """Return a sketch of some steps with host and perhaps device events, overlapping at will."""
    host = draw(st.lists(lines(HOST, ("main", "backward", "thread pin")), min_size=1, max_size=8))
    device = draw(st.lists(lines(DEVICE, ("stream 7", "stream 20")), max_size=8))
    marked = draw(st.sampled_from(("", " unmarked")))
    head = ["device NVIDIA A100-SXM4-80GB"] if device else []
    head += [f"ranks {ranks}", f"steps {draw(st.integers(1, 4))} x {STEP_US}us{marked}"]
    own = [f"  rank {draw(st.integers(0, ranks - 1))}: {line.strip()}" for line in host[1:]] if ranks > 1 else host[1:]
    return "\n".join([*head, host[0], *own, *device])


@settings(max_examples=60, deadline=None)
@given(sketches())
def test_the_ledger_sums_to_the_wall_time(text: str):
    """Every nanosecond of every step goes to one cause, none of them negative; marked steps are as long as they are."""
    (recording,) = sketch(text)
    ledger = measure(recording)[StepLedger]
    if not isinstance(ledger, StepLedger):
        return
    assert (ledger.ns >= 0).all()
    assert np.array_equal(ledger.ns.sum(axis=0), ledger.step_ns)
    assert (ledger.busy_ns <= ledger.step_ns).all()
    if ledger.marked and not ledger.on_device:
        assert ledger.step_ns.tolist() == [STEP_US * 1000] * len(ledger.step_ns)


@settings(max_examples=25, deadline=None)
@given(text=sketches(), seed=st.integers(0, 99))
def test_the_order_of_the_rows_does_not_matter(text: str, seed: int, tmp_path_factory: pytest.TempPathFactory):
    """A file's rows may stand in any order: all figures and conclusions are the same; ties may be listed otherwise.

    Spans of exactly the same time on one thread are left out: who encloses whom is then told by nothing but the order.
    """
    spans = [re.split(r"us (?=\D)", line.strip())[0] for line in text.splitlines()]
    assume(len(spans) == len(set(spans)))
    folder = tmp_path_factory.mktemp("rows")
    (document,) = traces(text)
    found = []
    for name in ("sorted", "shuffled"):
        (folder / name).mkdir()
        path = folder / name / "trace.json"
        path.write_text(json.dumps(document), "utf-8")
        told = report.to_json(analyze_recordings(readers.read(path)))
        told["run"].pop("sources")
        told["tables"] = {name: sorted(map(str, rows)) for name, rows in told["tables"].items()}
        found.append(told)
        random.Random(seed).shuffle(document["traceEvents"])
    assert found[0] == found[1]


@settings(max_examples=25, deadline=None)
@given(sketches(ranks=2))
def test_the_order_of_the_ranks_does_not_matter(text: str):
    """Two ranks given the other way round are the same job."""
    first, second = sketch(text)
    forward, backward = (report.to_json(analyze_recordings(ranks)) for ranks in ([first, second], [second, first]))
    for told in (forward, backward):
        told["run"].pop("sources")
    assert forward == backward


@settings(max_examples=25, deadline=None)
@given(sketches())
def test_a_report_survives_json_and_equals_itself(text: str):
    """What is read back says the same, and comparing a report with itself shows no change."""
    made = analyze_recordings(sketch(text))
    told = report.to_json(made, "en")
    again = report.from_json(json.loads(json.dumps(told)))
    assert report.to_json(again, "en") == told
    same = compare(made, again)
    assert not same.new
    assert not same.gone
    assert all(change.difference_ns == 0 for change in (*same.ledger, *same.operators))


@settings(max_examples=20, deadline=None)
@given(text=sketches(ranks=2))
def test_the_order_of_the_files_does_not_matter(text: str, tmp_path_factory: pytest.TempPathFactory):
    """Two files of one job, given in either order or as their folder, are the same job."""
    folder = tmp_path_factory.mktemp("files")
    files = write_traces(text, folder)
    told = [report.to_json(analyze(paths)) for paths in (files, files[::-1], [folder])]
    for one in told:
        one["run"].pop("sources")
    assert told[0] == told[1] == told[2]


def judged(made: Report) -> tuple[object, ...]:
    """Return what a report concludes, without its words."""
    verdict = made.verdict
    return verdict.bottleneck, verdict.confidence, verdict.share, verdict.contributing, verdict.late_ranks


@settings(max_examples=40, deadline=None)
@given(
    sketches(), st.integers(0, 3), st.sampled_from(("aten::normal_", "aten::copy_", "poll.py(3): wait", "gemm_on_host"))
)
def test_an_unrelated_thread_changes_no_verdict(text: str, place: int, name: str):
    """A thread that launches nothing and does less than the main one, inside the time that the others span."""
    main = f"{text}\n  main 0us..1us aten::view\n  main {STEP_US - 40}us..{STEP_US - 39}us x20 every 2us aten::view"
    stranger = f"{main}\n  thread stranger {STEP_US // 2 + place}us..{STEP_US // 2 + 10}us {name}"
    alone, beside = (analyze_recordings(sketch(one)) for one in (main, stranger))
    assert judged(beside) == judged(alone)
    assert beside.ledger == alone.ledger


def _scaled(line: str, length_us: int) -> str:
    """Return a line of a sketch for a step of another length."""
    return re.sub(r"(\d+)us", lambda found: f"{int(found[1]) * length_us // STEP_US}us", line)


WORK = (
    "main 0us..{end}us enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "main 0us..20us aten::mm -> stream 7 30us..{end}us ampere_sgemm",
    "main 0us..20us aten::add -> stream 7 30us..{end}us vectorized_elementwise_kernel",
    "main op 0us..20us c10d::allreduce_ -> stream 7 30us..{end}us ncclDevKernel_AllReduce_Sum_f32",
    "main 0us..{end}us aten::mm",
    "main 0us..8us x70 every 10us aten::add",
)
"""What fills most of a step: one of each class, and one of two without a device."""


@st.composite
def steady(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Return the steps of a job, each as long as the others but for a fifth, and some of them, from either end."""
    step = [f"  {draw(st.sampled_from(WORK)).format(end=draw(st.integers(600, 950)))}"]
    step += [
        *draw(st.lists(lines(HOST, ("main", "backward")), max_size=2)),
        "  main 960us..961us x20 every 2us aten::view",
    ]
    lengths = draw(st.lists(st.integers(800, 1200), min_size=3, max_size=7))
    steps = ["\n".join([f"steps 1 x {length}us", *(_scaled(line, length) for line in step)]) for length in lengths]
    some = draw(st.integers(2, len(steps) - 1))  # of one alone nobody is sure
    return steps, steps[:some] if draw(st.booleans()) else steps[-some:]


@settings(max_examples=100, deadline=None)
@given(steady())
def test_fewer_steps_do_not_flip_a_sure_class(cut: tuple[list[str], list[str]]):
    """Of a steady job some steps may say less, but where both are sure they say the same."""
    whole, part = (
        analyze_recordings(sketch("\n".join(["device NVIDIA A100-SXM4-80GB"] * ("stream" in steps[0]) + steps))).verdict
        for steps in cut
    )
    if min(whole.confidence, part.confidence) >= SURE and part.bottleneck is not Bottleneck.UNDETERMINED:
        assert whole.bottleneck in (part.bottleneck, Bottleneck.UNDETERMINED)
