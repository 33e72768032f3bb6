"""A thread off its core: how long, behind whom, and what verdict and findings make of it; all worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.rule_outcomes import outcome
from uncork.findings import Bottleneck
from uncork.locale import catalogue, say
from uncork.measure import MissingEvidence, Rank, measure
from uncork.measure.core_waits import CoreWaits
from uncork.measure.step_ledger import StepLedger, _with_core_wait
from uncork.pipeline import analyze_recordings
from uncork.quality import gate
from uncork.recording import CoreTime, Recording, RunInfo, SampleTable, Window
from uncork.testing import sketch

MS = 1_000_000
STEPS = """
steps 4 x 10ms
  main 0ms..1ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
  main 1ms..1.5ms x18 every 0.5ms aten::mm
"""
SHARED = CoreTime(40 * MS, 16 * MS, 16 * MS, queued_ns=20 * MS, children_ns=60 * MS, machine_ns=76 * MS)
"""Of 40 ms the thread ran 16 and stood in the queue 20; its children ran 60, and nobody else."""
ALONE = replace(SHARED, children_ns=0)
"""The same, and it has no children: of the machine's 76 ms others had 60."""


def recorded(counts: CoreTime, text: str = STEPS, **settings: object) -> Recording:
    """Return a recording of four steps of 10 ms, of which 9 are operators, with such counts."""
    known = {"num_workers": 2, "cores": 2, "threads": 1, **settings}
    run = RunInfo(windows=(Window("light", (10 * MS,) * 4, cores=counts),), settings=known)
    return replace(sketch(text)[0], run=run)


def waits(counts: CoreTime, **settings: object) -> CoreWaits:
    """Return the waits of such a recording."""
    return CoreWaits.of(Rank(recorded(counts, **settings)))


def test_a_wait_is_what_both_counts_bear_out() -> None:
    """9 ms of work of which the thread ran 4 (16 of 40 by 10): 5 off its core, and 5 in the queue (20 of 40 by 10)."""
    one = waits(SHARED)
    assert (one.step_ns, one.work_ns, one.thread_ns, one.queued_ns, one.waited_ns) == (
        10 * MS, 9 * MS, 4 * MS, 5 * MS, 5 * MS,
    )  # fmt: skip
    assert (one.by_workers_ns, one.by_others_ns, one.off_core_ns) == (5 * MS, 0, 0)
    assert waits(replace(SHARED, queued_ns=8 * MS)).waited_ns == 2 * MS  # 2 in the queue, and 3 asleep
    assert waits(replace(SHARED, thread_ns=32 * MS)).waited_ns == 1 * MS  # it ran 8 of 9


def test_steps_that_run_are_not_put_off_by_what_is_between_them() -> None:
    """Each step's own CPU time, 8 of 10 ms, says more than the window's 4: 1 of 9 ms of work is left to wait in."""
    recording = recorded(SHARED)
    assert recording.run
    known = replace(recording.run.windows[0], cpu_ns=(8 * MS,) * 4)
    one = CoreWaits.of(Rank(replace(recording, run=replace(recording.run, windows=(known,)))))
    assert (one.thread_ns, one.queued_ns, one.waited_ns) == (8 * MS, 5 * MS, 1 * MS)


def test_others_are_what_the_machine_did_beyond_the_program() -> None:
    """The children's 60 ms are others' where there are none; half and half of 48 each gives half of the wait."""
    one = waits(ALONE)
    assert (one.by_workers_ns, one.by_others_ns, one.other_cores) == (0, 5 * MS, 1.5)
    one = waits(replace(SHARED, children_ns=52 * MS, machine_ns=120 * MS), cores=3)
    assert (one.worker_cores, one.other_cores) == (1.3, 1.3)
    assert one.by_workers_ns == one.by_others_ns == 2.5 * MS


def test_others_can_only_be_on_cores_that_the_program_may_use() -> None:
    """On one core of a busy machine, of which the thread has 0.4 and its workers 0.55, others have 0.05 at most."""
    assert waits(replace(ALONE, machine_ns=80 * MS), cores=1).other_cores == pytest.approx(0.6)
    assert waits(replace(SHARED, children_ns=64 * MS, machine_ns=80 * MS)).other_cores == 0
    long = CoreTime(400 * MS, 160 * MS, 160 * MS, queued_ns=200 * MS, children_ns=220 * MS, machine_ns=800 * MS)
    assert waits(long, cores=1).other_cores == pytest.approx(0.05)


def test_own_threads_and_children_that_load_nothing_are_neither() -> None:
    """Of the 1.5 cores that others than the thread had, its other threads had 1.0: a third is left to the others."""
    one = waits(replace(ALONE, process_ns=56 * MS), num_workers=0)
    assert (one.pool_cores, one.by_workers_ns) == (1.0, 0)
    assert one.by_others_ns == pytest.approx(5 * MS / 3, abs=1)
    one = waits(SHARED, num_workers=0)
    assert (one.pool_cores, one.worker_cores, one.by_workers_ns, one.by_others_ns) == (1.5, 0.0, 0, 0)


def test_few_ticks_of_children_are_no_share() -> None:
    """Below 50 ms, five hundredths of a second, what the children had is a guess, and goes to nobody of ours."""
    assert waits(replace(SHARED, children_ns=49 * MS)).worker_cores == 0
    assert waits(replace(SHARED, children_ns=50 * MS)).worker_cores == 1.25


def test_windows_are_taken_together_for_who_had_the_cores() -> None:
    """60 ms of 40 in one window and 0 of 80 in the other are half a core."""
    recording = recorded(SHARED)
    quiet = Window("baseline", (10 * MS,) * 8, cores=CoreTime(80 * MS, 16 * MS, 16 * MS, 0, 0, 16 * MS))
    assert recording.run
    run = replace(recording.run, windows=(*recording.run.windows, quiet))
    one = CoreWaits.of(Rank(replace(recording, run=run)))
    assert one.worker_cores == pytest.approx(0.5)
    assert one.waited_ns == 5 * MS  # of the window whose steps are shared out


def test_a_quota_is_no_other_program() -> None:
    """Stopped for 12 of the 20 ms in the queue: whoever else is on the machine has a quota of its own."""
    one = waits(replace(ALONE, throttled_ns=12 * MS))
    assert (one.throttled, one.by_others_ns) == (True, 0)
    assert not waits(replace(ALONE, throttled_ns=10 * MS)).throttled


def test_what_was_not_counted_is_missing() -> None:
    """No counts; and a device, where the host may wait rightly. Without queues only the time off the core is known."""
    with pytest.raises(MissingEvidence, match="core_time"):
        CoreWaits.of(Rank(sketch(STEPS)[0]))
    kernel = "device NVIDIA A100\nsteps 2 x 10ms\n  main 1ms..2ms aten::mm -> stream 7 2ms..9ms gemm\n"
    with pytest.raises(MissingEvidence, match="cpu_work"):
        CoreWaits.of(Rank(recorded(SHARED, kernel)))
    one = waits(replace(SHARED, queued_ns=None))
    assert (one.queued_ns, one.waited_ns, one.off_core_ns) == (None, 0, 5 * MS)
    assert waits(replace(SHARED, queued_ns=None), threads=2).off_core_ns == 0  # it may wait for its own threads


def test_the_wait_for_workers_leaves_the_operators() -> None:
    """Five of nine ms of each step's product go to the workers; the columns still sum to the step."""
    ledger = StepLedger.of(Rank(recorded(SHARED)))
    assert ledger.mean_ns("core_wait") == pytest.approx(5 * MS, abs=5)
    assert ledger.mean_ns("compute") == pytest.approx(4 * MS, abs=5)
    assert ledger.mean_ns("data_loading") == 1 * MS
    assert ledger.ns.sum(axis=0).tolist() == ledger.step_ns.tolist()
    assert "core_wait" not in StepLedger.of(Rank(recorded(ALONE))).causes


def test_calls_that_stood_still_waited_first() -> None:
    """9 ms of work and 2 that stood still, of which the thread ran 4: of 5 in the queue 2 were the calls that stood.

    So the workers get all of the stall and a third of the work where they have all cores, and halves with half of them.
    """
    one = replace(waits(SHARED), stalled_ns=2 * MS)
    assert (one.waited_ns, one.waited_in_work_ns) == (5 * MS, 3 * MS)
    assert [one.taken_share(cause) for cause in ("stall", "compute", "data_loading")] == [
        1.0,
        pytest.approx(1 / 3),
        0.0,
    ]
    half = replace(one, other_cores=1.5)
    assert half.taken_share("stall") == 0.5
    assert half.taken_share("tiny") == pytest.approx(1 / 6)
    assert half.crowded_share == pytest.approx(0.15)  # half of 3 ms of 10: what stood still is out of the shares
    ns = np.array([[9 * MS, 9 * MS], [0, 4 * MS], [1 * MS, 1 * MS]])
    moved = _with_core_wait(("compute", "stall", "data_loading"), ns, one)
    assert moved.tolist() == [[6 * MS, 6 * MS], [0, 0], [1 * MS, 1 * MS], [3 * MS, 7 * MS]]


def report(recording: Recording) -> tuple[Bottleneck, str, dict[str, dict[str, object]]]:
    """Return class and sentence of the verdict, and what limits it: id → parameters."""
    found = analyze_recordings([recording])
    assert found.verdict.summary.id in catalogue("zh")
    return found.verdict.bottleneck, found.verdict.summary.id, {one.id: dict(one.params) for one in found.quality}


def test_workers_that_take_the_cores_are_data_loading() -> None:
    """6 of 10 ms wait for workers or their batch; without the counts 9 of 10 are compute."""
    bottleneck, sentence, quality = report(recorded(SHARED))
    assert (bottleneck, sentence) == (Bottleneck.DATA_LOADING, "verdict.data_loading.core_wait.cpu")
    assert quality["waited-for-core"]["workers_share"] == 1.0
    assert report(sketch(STEPS)[0])[0] is Bottleneck.COMPUTE


def test_others_that_take_the_cores_leave_the_class_open_where_it_hangs_on_them() -> None:
    """Of 6.5 ms of work 5 wait for others: the 1.5 that are left are no more than the 3.5 of waiting for data."""
    text = STEPS.replace("0ms..1ms", "0ms..3.5ms").replace("1ms..1.5ms x18", "3.5ms..4ms x13")
    ran = replace(ALONE, thread_ns=6 * MS, process_ns=6 * MS)
    bottleneck, sentence, quality = report(recorded(ran, text))
    assert (bottleneck, sentence) == (Bottleneck.UNDETERMINED, "verdict.undetermined.crowded")
    assert quality["waited-for-core"]["others_share"] == 1.0
    # 4 of 9 are left of the product, which is still more than 1 of waiting.
    assert report(recorded(ALONE))[0] is Bottleneck.COMPUTE


def test_sleep_and_quota_are_told() -> None:
    """Off the core for 5 of 10 ms without a queue; and in it, stopped by the quota."""
    assert report(recorded(replace(ALONE, queued_ns=0)))[2]["slept-in-operators"]["off_core_ns"] == 5 * MS
    assert report(recorded(replace(ALONE, queued_ns=None)))[2]["off-core"]["off_core_ns"] == 5 * MS
    quality = report(recorded(replace(ALONE, throttled_ns=20 * MS)))[2]
    assert quality["cpu-quota"]["queued_ns"] == 5 * MS
    assert "waited-for-core" not in quality


def sampled(recording: Recording) -> Recording:
    """Return the recording with samples of a machine whose cores are full, 0.4 of the two by the program."""
    base = sketch(
        "samples cpu_core_share/0 1 1 1\nsamples cpu_core_share/1 1 1 1\nsamples process_cpu_cores 0.4 0.4 0.4\n"
        + STEPS
    )
    assert isinstance(base[0].samples, SampleTable)
    return replace(recording, samples=base[0].samples)


def test_a_machine_busy_elsewhere_is_not_in_the_way() -> None:
    """Others on 80 % of the cores; not where the program may use one of them and has it to itself."""
    assert "machine-busy" in report(sampled(recorded(ALONE)))[2]
    pinned = CoreTime(400 * MS, 160 * MS, 160 * MS, queued_ns=200 * MS, children_ns=220 * MS, machine_ns=800 * MS)
    assert "machine-busy" not in report(sampled(recorded(pinned, cores=1)))[2]


def test_the_rule_leaves_alone_what_is_mostly_others() -> None:
    """60 of 160 ms that others than the thread had are the workers': 1.9 of 10 ms, but not who keeps it waiting."""
    result = outcome("workers-take-cores", [recorded(replace(SHARED, machine_ns=176 * MS), cores=8)])
    assert result == []


@pytest.mark.parametrize(
    ("took", "ran", "told"),
    [(16, 4, True), (16, 5, False), (14, 4, False)],  # recorded steps of 10 ms run 4
)
def test_steps_that_only_waited_longer_did_the_same_work(took: int, ran: int, told: bool) -> None:
    """Half as long again, in no more than 1.2 times the CPU time; what runs longer has more to do."""
    recording = recorded(SHARED)
    assert recording.run
    others = Window("unwatched", (took * MS,) * 20, cpu_ns=(ran * MS,) * 20)
    run = replace(recording.run, windows=(*recording.run.windows, others))
    quality = report(replace(recording, run=run))[2]
    assert ("others-waited" in quality) is told
    assert ("unlike-others" in quality) is (took == 16)


def test_a_window_by_the_clock_is_compared_with_no_steps() -> None:
    """It ended before the first step was made, so it has no steps whose length could be compared."""
    recording = recorded(SHARED)
    assert recording.run
    others = Window("unwatched", (16 * MS,) * 20, cpu_ns=(4 * MS,) * 20)
    by_clock = replace(recording.run.windows[0], step_ns=())
    run = replace(recording.run, windows=(by_clock, others))
    assert "others-waited" not in report(replace(recording, run=run))[2]


@pytest.mark.parametrize(
    ("threads", "severity"),
    [
        ({"others": 2, "forwards": 0, "backwards": 30, "updates": 30}, "warning"),
        ({"others": 1, "forwards": 11, "backwards": 0, "updates": 0}, "warning"),
        ({"others": 1, "forwards": 10, "backwards": 0, "updates": 0}, "info"),  # a tenth of the 100 steps
        ({}, None),
        ({"others": 1, "forwards": "many", "updates": None}, None),
        ({"others": -1, "forwards": 50, "updates": 0}, None),
        ({"others": 1, "forwards": 0, "updates": 0}, None),
    ],
)
def test_a_model_on_other_threads_is_told(threads: dict[str, object], severity: str | None) -> None:
    """The report is of one thread's 100 steps: what ran beside it is counted; what is no count says nothing."""
    recording = replace(recorded(SHARED), run=RunInfo(steps_seen=100, threads=threads))
    told = {one.id: one for one in gate([measure(recording)], [0])}.get("other-threads")
    assert (told and told.severity) == severity
    if told:
        counts = {key: threads[key] for key in ("others", "forwards", "updates")}
        assert told.params == {**counts, "steps": 100}
        assert all(str(count) in say("en", "quality.other-threads", dict(told.params)) for count in counts.values())
