"""The quality gate: each id on a recording that has the fault, and not on a sound one."""

from dataclasses import replace

import numpy as np
import pytest

from uncork.findings import Quality
from uncork.locale import catalogue, say
from uncork.measure import Rank, measure
from uncork.measure.busy_machine import BusyMachine
from uncork.measure.step_ledger import StepLedger
from uncork.pipeline import analyze_recordings
from uncork.quality import BLOCKING, blocks, gate
from uncork.recording import Between, Recording, RunInfo, SampleTable, Window
from uncork.testing import sketch

SOUND = """
    device NVIDIA A100-SXM4-80GB
    with shapes stacks memory modules
    steps 4 x 10ms
      main 0ms..9ms nn.Module: Linear_0
      main 0ms..0.1ms x10 every 0.2ms aten::mm {"Input Dims": [[8, 8], [8, 8]]}
      main 5ms..5.1ms aten::mm -> stream 7 5.1ms..9ms ampere_sgemm
      main 5ms [memory] {"Addr": 1, "Bytes": 8, "Total Allocated": 8, "Total Reserved": 8, "Device Type": 1}
"""


def found(*recordings: Recording) -> dict[str, Quality]:
    """Return what the gate says about recordings, by id."""
    return {one.id: one for one in gate([measure(one) for one in recordings], range(len(recordings)))}


def quality(text: str) -> dict[str, Quality]:
    """Return what the gate says about a sketch, by id."""
    return found(*sketch(text))


def test_a_sound_recording_passes_without_a_word() -> None:
    """Steps, operators, device records, links, shapes, stacks, memory and modules are all there."""
    assert quality(SOUND) == {}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("no-steps", ("steps 4 x 10ms", "steps 4 x 10ms unmarked")),
        ("no-stacks", ("main 0ms..9ms nn.Module: Linear_0", "")),
        ("no-modules", ("nn.Module: Linear_0", "train.py(3): step")),
        ("no-shapes", ('{"Input Dims": [[8, 8], [8, 8]]}', "")),
        ("no-memory", ("main 5ms [memory]", "main 5ms..5.01ms aten::relu")),
        ("too-short", ("steps 4", "steps 1")),
        ("device-data-missing", ("main 5ms..5.1ms aten::mm -> stream 7 5.1ms..9ms ampere_sgemm",
                                 "main 5ms..5.1ms cudaLaunchKernel")),
        ("step-marks-end-before-device-work", ("5.1ms..9ms", "5.1ms..14ms")),
        ("observer-overhead", ("main 5ms [memory]", "main overhead 1ms..4ms Buffer Flush\n  main 5ms [memory]")),
        ("graph-replay", ("main 5ms..5.1ms aten::mm ->", "main 5ms..5.1ms cudaGraphLaunch ->")),
    ],
)  # fmt: skip
def test_each_fault_is_named(name: str, change: tuple[str, str]) -> None:
    """A sound recording with one thing taken away is told to lack it."""
    assert change[0] in SOUND
    assert name in quality(SOUND.replace(*change))


def test_launches_without_any_device_record_forbid_a_verdict() -> None:
    """An idle device is not concluded from records that are missing."""
    said = quality(SOUND.replace("aten::mm -> stream 7 5.1ms..9ms ampere_sgemm", "cudaLaunchKernel"))
    assert said["device-data-missing"].severity == BLOCKING
    assert said["device-data-missing"].params["launches"] == 4


def test_a_cpu_recording_beside_a_listed_device_is_no_missing_data() -> None:
    """A listed device, no launch, and operators that only a CPU has: the job runs on the CPU."""
    assert "device-data-missing" not in quality("""
        device NVIDIA A100-SXM4-80GB
        steps 4 x 10ms
          main 0ms..8ms x1 every 1ms aten::mkldnn_convolution
          main 8ms..8.1ms x10 every 0.1ms aten::to
    """)


def test_one_stray_operator_of_a_device_proves_nothing() -> None:
    """A single cudnn operator among many does not turn a CPU recording into a broken one."""
    assert "device-data-missing" not in quality("""
        steps 4 x 10ms
          main 0ms..0.1ms x50 every 0.1ms aten::mm
        once
          main 0ms..1ms aten::cudnn_convolution
    """)


def test_mostly_first_use_is_too_short() -> None:
    """One lazy launch of 300 ms in a window of 340 ms leaves nothing to judge."""
    said = quality("""
        device NVIDIA A100-SXM4-80GB
        steps 1 x 340ms
          main runtime 0ms..300ms cudaLaunchKernel -> stream 7 300ms..302ms ampere_sgemm
          main 310ms..311ms x20 every 1ms aten::mm
    """)
    assert said["too-short"].severity == BLOCKING
    assert said["too-short"].share_affected == pytest.approx(300 / 340)
    assert say("en", "quality.too-short", said["too-short"].params).endswith("calls that carry a first use.")


def test_a_recording_too_short_says_which_way():
    """One step is one step, and no figure of first uses that it has none of; three operators are three."""
    (step,) = sketch(SOUND.replace("steps 4", "steps 1"))
    told = found(step)["too-short"]
    assert say("en", "quality.too-short", told.params) == "Too short to see what repeats. Steps: 1."
    assert say("zh", "quality.too-short", told.params) == "记录太短，看不出重复的部分。步数：1。"
    (few,) = sketch("main 0ms..1ms x3 every 2ms aten::mm")
    assert say("en", "quality.too-short", found(few)["too-short"].params).endswith("records, in all: 3.")


def test_a_long_first_step_is_warm_up() -> None:
    """A first step of 100 ms before three of 10 ms is told, with its share of the time."""
    said = quality("""
        steps 1 x 100ms
          main 0ms..90ms aten::mm
          main 90ms..90.1ms x10 every 0.2ms aten::add
        steps 3 x 10ms
          main 0ms..9ms aten::mm
    """)
    assert said["warm-up-included"].share_affected == pytest.approx(100 / 130)
    assert said["warm-up-included"].params["steps"] == 1


def test_ranks_that_are_not_there_and_ranks_in_one_file() -> None:
    """Two recordings of a job of four lack two; two from one file were merged."""
    ranks = sketch(SOUND.replace("device NVIDIA", "ranks 2\n    device NVIDIA"))
    said = found(*(replace(one, world_size=4, source="merged.json") for one in ranks))
    assert said["missing-ranks"].share_affected == 0.5
    assert said["missing-ranks"].params["missing"] == 2
    assert "merged-ranks" in said
    apart = found(*(replace(one, world_size=2, source=f"{place}.json") for place, one in enumerate(ranks)))
    assert not {"missing-ranks", "merged-ranks"} & set(apart)


def test_a_fault_of_one_rank_in_three_lowers_confidence_only() -> None:
    """Two of three ranks have their device records: the verdict may stand on them."""
    whole = sketch(SOUND)
    broken = sketch(SOUND.replace("aten::mm -> stream 7 5.1ms..9ms ampere_sgemm", "cudaLaunchKernel"))
    said = gate([measure(one) for one in (*whole, *whole, *broken)], (0, 1, 2))
    assert blocks(said) is None
    assert "device-data-missing" in [one.id for one in said]


def test_extras_may_stand_in_the_recording_for_places() -> None:
    """What only the second, deep recording of a run holds is not missing."""
    plain = SOUND.replace("main 0ms..9ms nn.Module: Linear_0", "").replace('{"Input Dims": [[8, 8], [8, 8]]}', "")
    (light,) = sketch(plain)
    (deep,) = sketch(SOUND)
    assert {"no-stacks", "no-shapes", "no-modules"} <= set(found(light))
    assert found(replace(light, deep=deep)) == {}


def test_repairs_and_unknown_formats_are_told() -> None:
    """Mended places are counted; a format of another tool without device work forbids a verdict."""
    (sound,) = sketch(SOUND)
    assert found(replace(sound, repairs={"truncated": 2}))["repaired-input"].params["repairs"] == 2
    assert "foreign-format" in found(replace(sound, format="rocprof"))


def test_every_id_says_what_it_means_and_what_to_do() -> None:
    """The catalogue has a message and a fix for each id of the manual, in both languages."""
    ids = [
        "device-data-missing",
        "no-steps",
        "step-cut",
        "too-short",
        "warm-up-included",
        "no-cpu-ops",
        "no-launch-links",
        "no-stacks",
        "no-shapes",
        "no-memory",
        "no-modules",
        "lost-events",
        "graph-replay",
        "missing-ranks",
        "clock-unreliable",
        "step-marks-end-before-device-work",
        "foreign-format",
        "merged-ranks",
        "repaired-input",
        "observer-overhead",
        "rank-unknown",
        "earlier-recordings",
        "crossing-events",
        "stalled-steps",
        "stalled-calls",
        "machine-busy",
        "unlike-others",
        "between-steps",
        "other-threads",
        "sources-disagree",
        "memory-of-others",
        "names-lost",
    ]
    for lang in ("en", "zh"):
        texts = catalogue(lang)
        assert [one for one in ids if f"quality.{one}" not in texts or f"quality.{one}.fix" not in texts] == []


def test_other_programs_on_the_cores_are_told():
    """Two cores fully used, half a core of it by the program: others took three quarters; alone it is silence."""
    assert [one.id for one in gate([{BusyMachine: BusyMachine(0.75, 0.0)}], [0])] == ["machine-busy"]
    assert gate([{BusyMachine: BusyMachine(0.75, 0.2)}], [0]) == []
    assert gate([{BusyMachine: BusyMachine(0.1, 0.0)}], [0]) == []
    when, full = np.arange(3), np.ones(3)
    series = {
        "cpu_core_share/0": (when, full),
        "cpu_core_share/1": (when, full),
        "process_cpu_cores": (when, np.array([0.0, 0.5, 0.5])),
    }
    recording = Recording("run", "run", samples=SampleTable(series))
    assert BusyMachine.of(Rank(recording)) == BusyMachine(others_share=0.75, idle_share=0.0)


CHECKED = """
device NVIDIA A100-SXM4-80GB
samples gpu_busy_share/0 {busy}
samples gpu_memory_used_bytes/0 {used}
steps 5 x 1s
  main 1ms [memory] {{"Bytes": 1, "Total Allocated": 1, "Total Reserved": 2147483648, "Device Type": 1, "Device Id": 0}}
  main 0ms..1ms aten::mm -> stream 7 0.1s..0.5s gemm
"""


def checked(busy: str, used: str) -> dict[str, Quality]:
    """Return what the gate says of a device that has work 40 % of the time and 2 GiB reserved."""
    return found(*sketch(CHECKED.format(busy=busy, used=used)))


def test_r1_7_what_the_driver_says_and_the_recording_does_not_is_told():
    """Kernels fill 40 % of the steps: 80 % sampled are not of the same work, 50 % are; two samples tell nothing."""
    params = checked("0.8 0.8 0.8 0.8", "3GiB 3GiB 3GiB")["sources-disagree"].params
    assert (params["busy_share"], params["recorded_busy_share"]) == (pytest.approx(0.8), pytest.approx(0.4))
    assert {"sources-disagree", "memory-of-others"}.isdisjoint(checked("0.5 0.5 0.5 0.5", "3GiB 3GiB 3GiB"))
    assert "sources-disagree" not in checked("0.8 0.8", "3GiB 3GiB 3GiB")


def test_r1_7_a_device_less_idle_without_the_profiler_is_the_same_work():
    """Kernels of 0.4 s fill 80 % of an unobserved step of 0.5 s, 40 % of the recorded one: 80 % sampled agree."""
    text = CHECKED.format(busy="0.8 0.8 0.8 0.8", used="3GiB 3GiB 3GiB")
    assert "sources-disagree" in found(*sketch(text))
    assert "sources-disagree" not in found(*sketch(text.replace("steps", "window baseline 5 x 500ms\nsteps", 1)))


def test_r1_7_memory_beyond_the_allocators_is_somebody_elses():
    """Used 12 GiB, reserved 2: ten belong to others, more than a context and libraries take."""
    params = checked("0.4 0.4 0.4", "3GiB 12GiB 12GiB")["memory-of-others"].params
    assert (params["reserved_bytes"], params["others_bytes"]) == (2 << 30, 10 << 30)


def test_what_was_mended_is_said_once_per_file_and_in_words():
    """Both ranks of one file tell its three repairs: they count once, another file's are added."""
    (sound,) = sketch(SOUND)
    first, second = ({"quotes": 2, "no_time": 1}, {"quotes": 3})
    ranks = [replace(sound, repairs=first, source="a"), replace(sound, repairs=first, source="a")]
    told = found(*ranks, replace(sound, repairs=second, source="b"))["repaired-input"]
    assert told.params == {"repairs": 6, "what": {"repair.quotes": 5, "repair.no_time": 1}}
    assert say("en", "quality.repaired-input", told.params) == (
        "The recording was damaged or unusual. Quotation marks missing or not escaped were set right: 5. "
        "Events without a time were left out: 1."
    )
    assert "5 处。舍弃了没有时间的事件：1 个。" in say("zh", "quality.repaired-input", told.params)


@pytest.mark.parametrize(
    ("repairs", "severity"),
    [
        ({"quotes": 90}, "info"),  # nothing is lost
        ({"no_time": 1}, "info"),  # 1 of 201 events
        ({"no_time": 3}, "warning"),  # 3 of 203
        ({"second_document": 1}, "warning"),
        ({"nanoseconds": 200}, "warning"),
        ({"unreadable_events": 200}, "warning"),  # half of 400
        ({"unreadable_events": 201}, "blocking"),  # more than was read
    ],
)
def test_losses_are_told_without_asking(repairs, severity):
    """Of 200 events one may be left out; more, or a guess that all figures stand on, is a warning; most, no verdict."""
    (recording,) = sketch("steps 2 x 1s\n  main 0ms..1ms x99 every 5ms aten::mm\n")
    assert len(recording.events) == 200
    assert found(replace(recording, repairs=repairs))["repaired-input"].severity == severity


def test_a_recording_of_collectives_without_a_rank_is_told():
    """Who waits for whom is counted by ranks; a recording that names none is told, one without collectives is not."""
    (talking,) = sketch(
        SOUND.replace(
            "aten::mm -> ", "aten::mm -> stream 9 5.1ms..9ms ncclDevKernel_AllReduce\n  main 1ms..2ms aten::mm -> "
        )
    )
    assert "rank-unknown" in found(replace(talking, rank=None))
    assert "rank-unknown" not in found(replace(talking, rank=0))
    (alone,) = sketch(SOUND)
    assert "rank-unknown" not in found(replace(alone, rank=None))


def test_operators_that_cross_a_step_are_counted():
    """An operator that begins in one step and ends in the next, one of four events, is a warning."""
    (recording,) = sketch("steps 2 x 10ms\n  main 1ms..2ms aten::mm\n")
    table = recording.events
    dur = table.dur_ns.copy()
    assert "crossing-events" not in found(recording)
    dur[np.flatnonzero(table.name_is("aten::mm"))[0]] = 12_000_000
    told = found(replace(recording, events=replace(table, dur_ns=dur)))["crossing-events"]
    assert (told.params["crossing"], told.share_affected, told.severity) == (1, 0.25, "warning")


def test_times_that_mostly_cross_carry_no_verdict():
    """Starts in seconds beside lengths in microseconds: nearly all operators of a thread would cross one another."""
    (recording,) = sketch("steps 4 x 10ms\n  main 0ms..1ms x9 every 1.1ms aten::mm\n")
    table = recording.events
    dur = np.where(table.name_is("aten::mm"), 1_500_000, table.dur_ns)
    report = analyze_recordings([replace(recording, events=replace(table, dur_ns=dur))])
    assert report.verdict.summary.id == "verdict.undetermined.crossing-events"
    assert report.verdict.bottleneck.value == "undetermined"
    assert "{" not in say("zh", report.verdict.summary.id, report.verdict.summary.params)


def test_first_steps_without_their_kernels_are_told_and_nothing_else_counts_as_lost():
    """Two of five equal steps have launches but no kernels: 40 % are left out, and the rest has lost nothing."""
    (recording,) = sketch(
        "device NVIDIA A100-SXM4-80GB\nsteps 2 x 10ms\n  main 1ms..2ms aten::mm\n"
        '  main runtime 1.2ms..1.3ms x9 every 10us cudaLaunchKernel {"correlation": 9}\n'
        "steps 3 x 10ms\n  main 1ms..2ms aten::mm -> stream 7 1.5ms..9.5ms ampere_sgemm\n"
    )
    told = found(recording)
    assert (told["first-steps-lost"].params["steps"], told["first-steps-lost"].share_affected) == (2, 0.4)
    assert {"lost-events", "warm-up-included"}.isdisjoint(told)


def test_a_cut_file_is_told_without_asking():
    """What was mended in place is a remark; a file that ends too early is a warning."""
    severities = []
    for repairs in ({"trailing_comma": 1}, {"cut_file": 1}):
        recording = replace(sketch("steps 5 x 10ms\n  main 0ms..1ms x9 every 1ms aten::mm\n")[0], repairs=repairs)
        severities += [one.severity for one in gate([measure(recording)], [0]) if one.id == "repaired-input"]
    assert severities == ["info", "warning"]


@pytest.mark.parametrize(
    ("steps", "longer"),
    [
        ({"baseline": 20, "light": 10, "baseline2": 8}, 1.25),  # the later steps count: the first touch new memory
        ({"baseline": 8, "light": 10}, 1.25),
        ({"baseline": 8, "light": 10, "baseline2": 10}, None),
        ({"baseline": 10, "light": 10, "unwatched": 4}, 2.5),  # baseline and light windows fell into a bad moment
        ({"baseline": 10, "light": 10, "unwatched": 8}, None),  # later steps are a little shorter by nature
        ({"light": 10, "baseline2": 8}, None),  # nothing before it: whether they had settled is not known
    ],
)
def test_the_observer_is_held_against_steps_without_it(steps: dict[str, int], longer: float | None) -> None:
    """Light steps of 10 ms, beside steps of that many ms in the windows without a profiler."""
    windows = tuple(Window(name, (ms * 1_000_000,) * (20 if name == "unwatched" else 4)) for name, ms in steps.items())
    told = found(replace(sketch(SOUND)[0], run=RunInfo(windows=windows))).get("observer-overhead")
    assert (told and told.params["times_longer"]) == longer


@pytest.mark.parametrize(
    ("between_ms", "steps", "share"),
    [(300, 10, 0.75), (10, 10, None), (300, 4, None)],  # 300 of 400 ms; 10 of 110 ms is under a tenth; too few steps
)
def test_time_beside_the_steps_is_told(between_ms: int, steps: int, share: float | None) -> None:
    """Steps of 100 ms in all, with validation between them: the verdict is about the steps alone, and says so."""
    between = Between(steps, 100 * 1_000_000, between_ms * 1_000_000)
    told = found(replace(sketch(SOUND)[0], run=RunInfo(between=between))).get("between-steps")
    assert (told and told.share_affected) == share


def test_a_stalled_step_is_never_shorter_than_the_others() -> None:
    """By their own time one of three stood still for 380 ms, though the others waited longer for data: 480, 490 ms."""
    ns = np.array([[500, 490, 0], [10, 10, 390]]) * 1_000_000
    steps = ns.sum(axis=0)
    ledger = StepLedger(("data_loading", "compute"), ns, steps, on_device=False, busy_ns=steps, marked=True)
    (said,) = gate([{StepLedger: ledger}], [0])
    assert (said.id, said.params["extra_ns"]) == ("stalled-steps", 380_000_000)


def test_calls_that_stood_still_are_told_with_their_share() -> None:
    """One addition of 12 ms among hundreds of 50 µs, in a window of three steps of 40 ms: a tenth of the time."""
    said = quality("""
      steps 1 x 40ms
        main 0ms..0.05ms x400 every 0.06ms aten::add
      steps 1 x 40ms
        main 0ms..0.05ms x400 every 0.06ms aten::add
        main 25ms..37ms aten::add
      steps 1 x 40ms
        main 0ms..0.05ms x400 every 0.06ms aten::add
    """)
    assert said["stalled-calls"].share_affected == pytest.approx(12 / 120)
    assert said["stalled-calls"].severity == "warning"
