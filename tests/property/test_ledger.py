"""Properties of the ledger and the verdict: sums, order, scale, and threads that have nothing to do with it."""

from dataclasses import replace
from random import Random

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from uncork.events import ArgColumn, EventTable, Kind, Strings, Track
from uncork.ledger import Ledger, partition
from uncork.measure import measure
from uncork.nesting import nest
from uncork.quality import gate
from uncork.recording import Recording
from uncork.timeline import Timeline
from uncork.verdict import judge

NAMES = {
    Kind.CPU_OP: ("aten::mm", "aten::add", "aten::empty", "aten::copy_", "c10d::allreduce_", "aten::normal_"),
    Kind.RUNTIME: ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaMalloc"),
    Kind.USER_ANNOTATION: ("enumerate(DataLoader)#_Iter.__next__", "Optimizer.step#SGD.step", "gloo:all_reduce"),
    Kind.PYTHON_FUNCTION: ("train.py(3): step", "image_processing_vit.py(9): preprocess"),
    Kind.KERNEL: ("ampere_sgemm", "vectorized_elementwise_kernel", "ncclDevKernel_AllReduce", "unknown"),
    Kind.GPU_MEMCPY: ("Memcpy HtoD (Pageable -> Device)", "Memcpy DtoD (Device -> Device)"),
}
DEVICE = (Kind.KERNEL, Kind.GPU_MEMCPY)
Row = tuple[int, int, Kind, str, int, int]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Return events anywhere on two threads and two streams, nested or crossing: (start, duration, kind, …)."""
    found: list[Row] = []
    kinds = draw(st.sampled_from([tuple(NAMES), tuple(kind for kind in NAMES if kind not in DEVICE)]))
    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(kinds))
        track = draw(st.integers(2, 3) if kind in DEVICE else st.integers(0, 1))
        start, dur = draw(st.integers(0, 12_000)) * 1_000, draw(st.integers(0, 4_000)) * 1_000
        found.append((start, dur, kind, draw(st.sampled_from(NAMES[kind])), track, draw(st.integers(0, 6))))
    if draw(st.booleans()):
        found += [
            (step * 4_000_000, 4_000_000, Kind.USER_ANNOTATION, f"ProfilerStep#{step}", 0, 0) for step in range(3)
        ]
    return found


def recording(found: list[Row]) -> Recording:
    """Return a recording of such rows."""
    texts = list(dict.fromkeys(row[3] for row in found))
    correlation = np.array([row[5] for row in found], np.int64)
    linked = np.flatnonzero(correlation)
    tracks = (Track("1", "1"), Track("1", "2"), Track("0", "7"), Track("0", "8"), Track("1", "3"))
    events = EventTable(
        ts_ns=np.array([row[0] for row in found], np.int64) + 1_700_000_000_000_000_000,
        dur_ns=np.array([row[1] for row in found], np.int64),
        kind=np.array([row[2] for row in found], np.uint8),
        name=np.array([texts.index(row[3]) for row in found], np.int32),
        track=np.array([row[4] for row in found], np.int32),
        tracks=tracks,
        strings=Strings.of(texts),
        args={"correlation": ArgColumn(ints=(linked, correlation[linked]))} if len(linked) else {},
    )
    return Recording(source="made", format="kineto", events=events)


def ledger(found: list[Row]) -> Ledger:
    """Return the ledger of such rows."""
    return partition(Timeline(recording(found)))


def spent(of: Ledger) -> dict[str, npt.NDArray[np.int64]]:
    """Return cause → time in each step."""
    return dict(zip(of.causes, of.ns, strict=True))


@settings(deadline=None, max_examples=150)
@given(rows())
def test_causes_sum_to_the_wall_time_of_every_step(found: list[Row]) -> None:
    """Every nanosecond goes to exactly one cause: sums are exact, none is negative, and busy time fits in."""
    made = ledger(found)
    assert (made.ns >= 0).all()
    assert (made.ns.sum(axis=0) == made.step_ns).all()
    assert ((made.busy_ns >= 0) & (made.busy_ns <= made.step_ns)).all()
    pieces = np.concatenate([each for each in made.intervals.values() if len(each)] or [np.empty((0, 2), np.int64)])
    pieces = pieces[np.argsort(pieces[:, 0])]
    assert (pieces[1:, 0] >= pieces[:-1, 1]).all()


@settings(deadline=None, max_examples=75)
@given(rows(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(found: list[Row], random: Random) -> None:
    """A file's order of events changes nothing, but for events that begin and end together."""
    distinct = list({(row[0], row[1], row[4]): row for row in found}.values())
    shuffled = list(distinct)
    random.shuffle(shuffled)
    first, second = ledger(distinct), ledger(shuffled)
    assert first.causes == second.causes
    assert (first.ns == second.ns).all()


@settings(deadline=None, max_examples=75)
@given(rows())
def test_an_unrelated_thread_changes_no_cause(found: list[Row]) -> None:
    """Short work on a thread that launches nothing and is not autograd's explains nothing."""
    host = [row for row in found if row[2] not in DEVICE]
    if not host:
        return
    # The main thread is the one with most operators; the stranger has less than any.
    start = min(row[0] for row in host)
    end = max(row[0] + row[1] for row in found)
    if end - start < 3 or not any(row[2] is Kind.USER_ANNOTATION and "Step#" in row[3] for row in found):
        return
    stranger: Row = (start + 1, end - start - 2, Kind.CPU_OP, "aten::normal_", 4, 0)
    before, after = spent(ledger(found)), spent(ledger([*found, stranger]))
    assert all((before[cause] == after[cause]).all() for cause in before)


@settings(deadline=None, max_examples=75)
@given(rows())
def test_self_times_sum_to_the_time_of_the_outermost_slices(found: list[Row]) -> None:
    """Own times and nesting agree even where events cross: nothing is counted twice."""
    table = recording(found).events
    assert table is not None
    slices = nest(table, np.flatnonzero(~np.isin(table.kind, np.array(DEVICE, np.uint8))))
    assert slices.self_ns.sum() == slices.dur_ns[slices.parent < 0].sum()


@settings(deadline=None, max_examples=40)
@given(rows(), st.integers(2, 5))
def test_costs_scale_with_time(found: list[Row], factor: int) -> None:
    """What the device does takes k times as long when everything does; thresholds in time only move idle causes."""
    slow = [(row[0] * factor, row[1] * factor, *row[2:]) for row in found]
    first, second = ledger(found), ledger(slow)
    if not first.on_device or not first.step_ns.sum():
        return
    marked = any("Step#" in row[3] for row in found)
    for cause in ("gemm", "other_kernel", "bandwidth", "comm", "copy", "data_loading"):
        if marked or cause != "data_loading":
            assert (spent(second)[cause] == factor * spent(first)[cause]).all()


@settings(deadline=None, max_examples=40)
@given(rows())
def test_every_recording_gets_a_verdict(found: list[Row]) -> None:
    """However broken, a recording is measured, gated and judged without a fault, alone and beside itself."""
    made = measure(replace(recording(found), rank=0))
    for ranks in ([made], [made, made]):
        numbers = list(range(len(ranks)))
        verdict = judge(ranks, numbers, [], gate(ranks, numbers))
        assert 0 <= verdict.confidence <= 1
        assert 0 <= verdict.share <= 1
