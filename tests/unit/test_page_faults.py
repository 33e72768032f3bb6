"""Memory that is given back in each step: what is counted, and what is said of it."""

from dataclasses import replace

import pytest

from tests.unit.rule_outcomes import outcome
from uncork.findings import Finding, NotAssessed
from uncork.measure import MissingEvidence, Rank
from uncork.measure.page_faults import PageFaults
from uncork.recording import Paging, Recording, RunInfo, Window
from uncork.report import finding_texts
from uncork.testing import sketch

STEPS = "steps 4 x 50ms\n  main 0ms..49ms aten::mm\n"
FIRST = Window("baseline", (50_000_000,) * 4, paging=Paging(12_000, 20_000_000, 200_000_000, 2_000))
SETTINGS = {"libc": "glibc 2.36", "malloc": []}


def recorded(later: Paging | None = None, command: tuple[str, ...] = (), **settings: object) -> Recording:
    """Return a recording whose first four steps made 12,000 faults, 2,000 of them for growth, and a later window."""
    windows = (FIRST, replace(FIRST, name="baseline2", paging=later)) if later else (FIRST,)
    run = RunInfo(command, windows=windows, first_baseline=FIRST, settings={**SETTINGS, **settings})
    return replace(sketch(STEPS)[0], run=run)


def found(recording: Recording) -> Finding:
    """Return the rule's only finding."""
    result = outcome("memory-given-back", [recording])
    assert isinstance(result, list), result
    (finding,) = result
    return finding


def test_growth_is_no_memory_given_back():
    """(12,000 − 2,000) / 4 faults of at least 4 KiB; 20 of 200 ms are the system's."""
    one = PageFaults.of(Rank(recorded()))
    assert (one.faults, one.given_back_bytes, one.later_faults) == (2500, 2500 * 4096, None)
    assert one.system_share == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("later", "share", "settled"),
    [
        (Paging(400, 4_000_000, 100_000_000, 0), 0.1 - 1.6e6 / 1e8, True),  # 100 faults a step, at most 4 us each
        (Paging(4_900, 0, 100_000_000, 0), 0.1, True),  # just below half of 2500, at no time
        (Paging(5_100, 9_000_000, 100_000_000, 0), 0.1, False),  # just above: nothing is taken off
    ],
)
def test_what_a_later_window_still_has_is_taken_off_where_the_faults_fell(later: Paging, share: float, settled: bool):
    """The system's share of the first window less that of the later one."""
    one = PageFaults.of(Rank(recorded(later)))
    assert (one.system_share, one.settled) == (pytest.approx(share), settled)


def test_faults_bound_the_system_s_time():
    """100 faults of 4 us each are 0.4 ms, however long the system was at work."""
    first = replace(FIRST, paging=Paging(100, 90_000_000, 200_000_000, 0))
    recording = recorded()
    assert recording.run
    one = PageFaults.of(Rank(replace(recording, run=replace(recording.run, first_baseline=first))))
    assert one.system_share == pytest.approx(0.002)


def test_less_cpu_time_than_a_dozen_looks_is_not_measured():
    """49 of 200 ms of wall: the process waited."""
    first = replace(FIRST, paging=Paging(12_000, 20_000_000, 49_000_000, 0))
    recording = recorded()
    assert recording.run
    with pytest.raises(MissingEvidence, match="page_faults_long"):
        PageFaults.of(Rank(replace(recording, run=replace(recording.run, first_baseline=first))))


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("train.py", "--name", "a b"), "python train.py --name 'a b'"),
        (("-m", "pkg.train"), "python -m pkg.train"),
        (("torchrun", "train.py"), "torchrun train.py"),
        (("train.py", "a\nrm"), "python train.py"),
        ((), "python train.py"),
    ],
)
def test_the_advice_stands_in_front_of_the_user_s_own_command(command: tuple[str, ...], line: str):
    """Quoted as a shell wants it; one that would span lines is not repeated. 2 × 10 MB are less than 256 MiB."""
    texts = finding_texts(found(recorded(command=command)), "en")
    assert texts["advice"][0]["snippet"].strip() == f"MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=268435456 {line}"


@pytest.mark.parametrize(("settled", "confidence"), [(True, 0.85), (False, 0.6)])
def test_faults_that_went_by_themselves_make_it_sure(settled: bool, confidence: float):
    """Profilers leave free memory in the heap that glibc cannot give back: an experiment that each run makes."""
    later = Paging(40 if settled else 12_000, 0, 200_000_000, 0)
    finding = found(recorded(later))
    assert finding.confidence == confidence
    assert ("the faults were gone" in finding_texts(finding, "en")["because"]) is settled


@pytest.mark.parametrize(
    ("settings", "lacks"),
    [
        ({"malloc": ["MALLOC_TRIM_THRESHOLD_=1"]}, "plain_malloc"),
        ({"libc": ""}, "plain_malloc"),
        ({"malloc": None}, "plain_malloc"),
        ({"num_workers": 2}, "own_faults"),
    ],
)
def test_other_allocators_and_shared_batches_are_not_judged(settings: dict[str, object], lacks: str):
    """What else makes faults is named as missing."""
    assert outcome("memory-given-back", [recorded(**settings)]) == NotAssessed("memory-given-back", (lacks,))


def test_with_workers_faults_that_went_were_the_allocator_s():
    """Batches in shared memory would still fault."""
    assert found(recorded(Paging(40, 0, 200_000_000, 0), num_workers=2)).confidence == 0.85


def test_on_a_device_the_host_s_memory_is_not_what_a_step_waits_for():
    """Only jobs that compute on the CPU are looked at."""
    on_device = sketch(
        "device NVIDIA A100-SXM4-80GB\nsteps 4 x 50ms\n  main 0ms..1ms aten::mm -> stream 7 1ms..49ms gemm\n"
    )[0]
    recording = replace(on_device, run=recorded().run)
    assert outcome("memory-given-back", [recording]) == NotAssessed("memory-given-back", ("cpu_work",))
