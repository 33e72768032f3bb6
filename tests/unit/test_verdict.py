"""The verdict on ledgers made by hand: class, contributing classes, late ranks, abstention, confidence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from uncork.findings import Bottleneck, Finding, Gain, Quality, Verdict
from uncork.ledger import CAUSES
from uncork.locale import catalogue, say
from uncork.measure import Measured, measure
from uncork.measure.device_roofline import DeviceRoofline
from uncork.measure.loader_stages import LoaderStages, Worker
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import with_waits
from uncork.pipeline import analyze_recordings
from uncork.quality import gate
from uncork.recording import RunInfo, Window
from uncork.report import finding_texts, from_json, spell, to_json
from uncork.testing import sketch
from uncork.verdict import judge

MS = 1_000_000


def ledger(*steps: Mapping[str, int], on_device: bool = True) -> Measured:
    """Return measurements with only a ledger; each step is cause → ms, and the rest of 100 ms is unexplained."""
    causes = tuple(cause for cause in CAUSES if cause != "comm_wait")
    ns = np.zeros((len(causes), len(steps)), np.int64)
    for column, step in enumerate(steps):
        for cause, ms in step.items():
            ns[causes.index(cause), column] = ms * MS
        ns[causes.index("unexplained"), column] += (100 - sum(step.values())) * MS
    wall = np.full(len(steps), 100 * MS)
    device = np.isin(causes, ["gemm", "other_kernel", "bandwidth", "comm", "copy"])
    busy = ns[device].sum(axis=0)
    return {StepLedger: StepLedger(causes, ns, wall, on_device=on_device, busy_ns=busy, marked=True)}


def ledger_of_waiting() -> Measured:
    """Return measurements with a ledger of 4 % dispatching and 96 % waiting for other ranks."""
    causes = ("comm_wait", "dispatch")
    ns, wall = np.array([[96 * MS], [4 * MS]]), np.array([100 * MS])
    return {StepLedger: StepLedger(causes, ns, wall, on_device=True, busy_ns=wall, marked=True)}


def verdict(*steps: Mapping[str, int], quality: Sequence[Quality] = (), on_device: bool = True) -> Verdict:
    """Return the verdict on one rank with such steps."""
    return judge([ledger(*steps, on_device=on_device)], [0], [], quality)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"data_loading": 50, "gemm": 40, "bandwidth": 10}, Bottleneck.DATA_LOADING),
        ({"gemm": 80, "bandwidth": 15, "dispatch": 5}, Bottleneck.COMPUTE),
        ({"gemm": 30, "bandwidth": 65, "dispatch": 5}, Bottleneck.MEMORY),
        ({"copy": 60, "gemm": 40}, Bottleneck.MEMORY),
        ({"copy_host": 40, "gemm": 60}, Bottleneck.MEMORY),
        ({"comm": 50, "gemm": 50}, Bottleneck.COMMUNICATION),
        ({"dispatch": 40, "py_short": 20, "gemm": 40}, Bottleneck.FRAMEWORK),
        ({"sync": 60, "gemm": 40}, Bottleneck.FRAMEWORK),
        ({"cpu_heavy": 60, "gemm": 40}, Bottleneck.COMPUTE),
        ({"py_prep": 60, "gemm": 40}, Bottleneck.DATA_LOADING),
    ],
)
def test_the_class_with_most_to_win_back(step: Mapping[str, int], expected: Bottleneck) -> None:
    """Idle and exposed time counts in full, work of the device by half; the largest class is the verdict."""
    assert verdict(step, step, step).bottleneck is expected


def test_classes_over_a_tenth_contribute_and_smaller_ones_do_not() -> None:
    """37 % of arithmetic and 18 % of memory-bound work beside 33 % of loading is worth 27 % and is named."""
    found = verdict({"data_loading": 33, "gemm": 37, "bandwidth": 18, "dispatch": 9})
    assert found.bottleneck is Bottleneck.DATA_LOADING
    assert found.contributing == (Bottleneck.COMPUTE,)
    assert found.share == pytest.approx(0.33)


def test_memory_and_compute_are_both_named_where_they_are_close() -> None:
    """Memory-bound kernels at 0.8 of the arithmetic ones cannot be left out; at 0.3 they can."""
    assert verdict({"gemm": 50, "bandwidth": 40}).contributing == (Bottleneck.MEMORY,)
    assert verdict({"gemm": 70, "bandwidth": 20}).contributing == ()


def test_first_use_leaves_the_denominator() -> None:
    """Half of the window is first use; of the other half the loader takes 60 %."""
    assert verdict({"first_use": 50, "data_loading": 30, "gemm": 20}).share == pytest.approx(0.6)


def test_nothing_worth_five_percent_is_no_bottleneck() -> None:
    """Where waiting for others is the only cost and none of them is late, no class can give anything back."""
    found = judge([ledger_of_waiting()], [0], [], [])
    assert found.bottleneck is Bottleneck.NONE


def test_a_device_near_its_roofline_has_no_bottleneck_unless_a_rule_knows_better() -> None:
    """96 % busy at 0.85 of the roofline is well used; at 0.4, or with a finding worth 20 %, it is compute-bound."""

    def found(attained: float, *findings: Finding) -> Bottleneck:
        measured = {**ledger(*[{"gemm": 96, "dispatch": 4}] * 3), DeviceRoofline: DeviceRoofline(0.95, attained)}
        return judge([measured], [0], findings, []).bottleneck

    better = Finding("fp32-matmul-without-tf32", Bottleneck.COMPUTE, 1, 0.5, Gain(0.1, 0.2), 0.9)
    assert found(0.85) is Bottleneck.NONE
    assert found(0.4) is Bottleneck.COMPUTE
    assert found(0.85, better) is Bottleneck.COMPUTE


def test_a_blocking_quality_forbids_a_verdict_and_says_which() -> None:
    """Missing device records: no class, and the sentence of that id."""
    found = verdict({"dispatch": 90}, quality=[Quality("device-data-missing", "blocking")])
    assert found.bottleneck is Bottleneck.UNDETERMINED
    assert found.summary.id == "verdict.undetermined.device-data-missing"


def test_mostly_unexplained_needs_one_class_that_stands_alone() -> None:
    """With 60 % unexplained, 40 % of loading alone is a verdict; shared, or at 20 %, it is not."""
    assert verdict({"data_loading": 40}).bottleneck is Bottleneck.DATA_LOADING
    assert verdict({"data_loading": 25, "dispatch": 15}).bottleneck is Bottleneck.UNDETERMINED
    assert verdict({"data_loading": 20}).bottleneck is Bottleneck.UNDETERMINED


LATE = """
    device NVIDIA A100-SXM4-80GB
    ranks 4
    steps 4 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.1ms..2ms ampere_sgemm
      rank 3: main 0.1ms..6.1ms HELD
      rank 0: main op 2ms..2.1ms c10d::allreduce_ -> stream 20 2.1ms..9ms ncclDevKernel_AllReduce
      rank 1: main op 2ms..2.1ms c10d::allreduce_ -> stream 20 2.1ms..9ms ncclDevKernel_AllReduce
      rank 2: main op 2ms..2.1ms c10d::allreduce_ -> stream 20 2.1ms..9ms ncclDevKernel_AllReduce
      rank 3: main op 8ms..8.1ms c10d::allreduce_ -> stream 20 8.1ms..9ms ncclDevKernel_AllReduce
"""


def late(held: str, order: Sequence[int] = (0, 1, 2, 3)) -> Verdict:
    """Return the verdict on four ranks, handed over in some order, of which the last is held up by something."""
    recordings = sketch(LATE.replace("rank 3: main 0.1ms..6.1ms HELD", held))
    measured = with_waits([measure(recordings[rank]) for rank in order], order)
    return judge(measured, order, [], [])


def test_waiting_for_a_late_rank_is_charged_to_what_makes_it_late() -> None:
    """Collectives fill 69 % of three ranks' steps, yet the fourth's loader, or dispatching, is the bottleneck."""
    loading = late("rank 3: main 0.1ms..6.1ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    assert (loading.bottleneck, loading.late_ranks) == (Bottleneck.DATA_LOADING, (3,))
    dispatching = late("rank 3: main 0.1ms..6.1ms aten::item")
    assert (dispatching.bottleneck, dispatching.late_ranks) == (Bottleneck.FRAMEWORK, (3,))
    assert say("en", dispatching.summary.id, dispatching.summary.params) == (
        "Rank 3 arrives late, and the others wait 60 % of each step for it (6.00 ms of 10.0 ms); what holds it up is "
        "the host: Python, or calling operators."
    )


def test_the_order_of_ranks_does_not_matter() -> None:
    """The same recordings in another order give the same verdict, late rank included."""
    held = "rank 3: main 0.1ms..6.1ms aten::item"
    assert late(held) == late(held, (2, 3, 0, 1))


def test_a_late_rank_that_nothing_explains_is_named_without_a_class() -> None:
    """Who is late is known from the collectives alone; why is not."""
    found = late("")
    assert (found.bottleneck, found.late_ranks) == (Bottleneck.UNDETERMINED, (3,))


def test_confidence_falls_with_margin_agreement_and_quality() -> None:
    """A clear, steady case is sure; a close one, one whose steps differ, and one with lost events are less so."""
    clear = verdict(*[{"data_loading": 60, "gemm": 30}] * 4).confidence
    close = verdict(*[{"data_loading": 30, "gemm": 60}] * 4).confidence
    mixed = verdict({"data_loading": 60, "gemm": 30}, {"gemm": 80}, {"data_loading": 90}, {"gemm": 70}).confidence
    lossy = verdict(*[{"data_loading": 60, "gemm": 30}] * 4, quality=[Quality("lost-events", "warning")]).confidence
    assert clear >= 0.9
    pair = verdict(*[{"gemm": 50, "bandwidth": 45}] * 4).confidence
    assert max(close, mixed, lossy) < 0.8
    named = verdict(*[{"gemm": 90, "bandwidth": 5}] * 4).confidence
    assert max(pair, verdict(*[{"other_kernel": 90, "bandwidth": 5}] * 4).confidence) < named


def test_communication_seen_by_one_rank_is_never_sure() -> None:
    """What looks like transfer may be waiting for a rank that is not here."""
    assert verdict(*[{"comm": 90, "gemm": 10}] * 4).confidence < 0.85


def test_workers_that_take_cores_make_work_look_longer_than_it_is() -> None:
    """Beside a tenth of waiting for their cores, compute is less sure than beside a tenth of waiting for data."""
    alike, crowded = ([{"compute": 70, cause: 10}] * 3 for cause in ("data_loading", "core_wait"))
    sure = verdict(*alike, on_device=False).confidence
    assert verdict(*crowded, on_device=False).confidence == pytest.approx(0.8 * sure)


def test_without_a_timeline_findings_speak() -> None:
    """A memory snapshot's finding gives the class; nothing found is nothing known."""
    held = Finding("near-capacity", Bottleneck.MEMORY, 0, 0.0, Gain(0.0, 0.0), 0.8)
    assert judge([{}], [0], [held], []).bottleneck is Bottleneck.MEMORY
    assert judge([{}], [0], [], []).bottleneck is Bottleneck.UNDETERMINED


ON_CPU = {"compute", "memop", "tiny", "optimizer", "core_wait"}
ON_BOTH = {"data_loading", "py_prep", "comm", "gc", "compile", "io", "py_short", "py_stack"}
SENTENCES = [
    (cause, on_device)
    for cause, kind in CAUSES.items()
    for on_device in (True, False)
    if kind.bottleneck and (cause in ON_BOTH or (cause in ON_CPU) is not on_device)
]


@pytest.mark.parametrize(("cause", "on_device"), SENTENCES)
def test_every_cause_has_a_sentence_in_both_languages(cause: str, on_device: bool) -> None:
    """Whatever dominates, the verdict's sentence and what would overturn it are in the catalogue, filled."""
    found = verdict(*[{cause: 90}] * 3, on_device=on_device)
    for message in (found.summary, *found.would_be_wrong_if):
        for lang in ("en", "zh"):
            assert message.id in catalogue(lang)
            assert "{" not in say(lang, message.id, message.params)


def test_gate_and_verdict_agree_on_a_sound_sketch() -> None:
    """The whole way: a loader-bound sketch is data loading, with nothing held against it but missing details."""
    (recording,) = sketch("""
        device NVIDIA A100-SXM4-80GB
        steps 4 x 10ms
          main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
          main 6ms..6.1ms aten::mm -> stream 7 6.1ms..10ms ampere_sgemm
          main 6.2ms..6.3ms x10 every 0.2ms aten::view
    """)
    measured = [measure(recording)]
    found = judge(measured, [0], [], gate(measured, [0]))
    assert (found.bottleneck, round(found.share, 2)) == (Bottleneck.DATA_LOADING, 0.6)
    assert say("en", found.summary.id, found.summary.params) == (
        "The device waits for the data loader in 60 % of each step (6.00 ms of 10.0 ms)."
    )


def of_sketch(text: str) -> Verdict:
    """Return the verdict on a sketch, gate included."""
    measured = [measure(one) for one in sketch(text)]
    numbers = range(len(measured))
    return judge(measured, numbers, [], gate(measured, numbers))


def test_fewer_steps_of_the_same_kind_give_the_same_class() -> None:
    """A steady job's class does not depend on how many of its steps were recorded."""
    step = {"data_loading": 45, "gemm": 40, "dispatch": 10}
    classes = {verdict(*[step] * count).bottleneck for count in (1, 2, 4, 16)}
    assert classes == {Bottleneck.DATA_LOADING}


def test_recorded_steps_that_differ_much_from_unobserved_ones_carry_no_verdict_but_framework() -> None:
    """Six times as long under the profiler: only the class that a profiler inflates by its nature; twice is kept."""
    steps = [{"compute": 90}] * 4
    for longer, expected in ((6.2, "undetermined"), (2.0, "compute")):
        seen = [Quality("observer-overhead", "warning", 1 - 1 / longer, {"times_longer": longer})]
        assert verdict(*steps, quality=seen, on_device=False).bottleneck.value == expected
    seen = [Quality("observer-overhead", "warning", 0.84, {"times_longer": 6.2})]
    assert verdict(*[{"dispatch": 90}] * 4, quality=seen, on_device=False).bottleneck.value == "framework"
    said = verdict(*steps, quality=seen, on_device=False).summary
    assert (said.id, said.params["times_longer"]) == ("verdict.undetermined.distorted", "6.2")


def test_an_only_step_is_as_sure_as_its_parts_agree() -> None:
    """A window without marks in which half of the time goes another way is less sure than a uniform one."""
    head = "device NVIDIA A100-SXM4-80GB\nonce\n"
    uniform = of_sketch(head + "main 0ms..0.1ms x80 every 1ms aten::mm -> stream 7 0.1ms..0.9ms ampere_sgemm\n")
    mixed = of_sketch(
        head
        + "main 0ms..0.1ms x56 every 1ms aten::mm -> stream 7 0.1ms..1ms ampere_sgemm\n"
        + "main 56ms..56.05ms x200 every 0.1ms aten::mm -> stream 7 56.01ms..56.02ms ampere_sgemm\n"
    )
    assert uniform.bottleneck is mixed.bottleneck is Bottleneck.COMPUTE
    assert mixed.confidence < 0.95 * uniform.confidence


def with_lengths(*steps: Mapping[str, int]) -> Measured:
    """Return measurements with only a ledger of steps as long as their causes together, in ms."""
    ns = np.array([[step.get(cause, 0) * MS for step in steps] for cause in CAUSES], np.int64)
    wall = ns.sum(axis=0)
    return {StepLedger: StepLedger(tuple(CAUSES), ns, wall, on_device=True, busy_ns=wall // 2, marked=True)}


def test_one_stalled_step_is_told_and_weighs_nothing() -> None:
    """One of six steps stands still for 700 ms: loading stays the answer, and the stall is said with its length."""
    step = {"data_loading": 60, "gemm": 80, "dispatch": 20}
    stalled = with_lengths(*[step] * 3, {**step, "dispatch": 720}, *[step] * 2)
    found = judge([stalled], [0], [], [])
    assert (found.bottleneck, round(found.share, 3)) == (Bottleneck.DATA_LOADING, 0.375)
    (said,) = gate([stalled], [0])
    assert (said.id, said.params) == ("stalled-steps", {"stalled": 1, "steps": 6, "extra_ns": 700 * MS})


def test_long_steps_that_recur_or_wait_for_the_loader_are_part_of_the_job() -> None:
    """Two long ones of six, or a long wait for the loader: such is the job, and every step counts."""
    step = {"gemm": 80, "dispatch": 20}
    for one in ([{**step, "dispatch": 720}] * 2, [{**step, "data_loading": 720}]):
        job = with_lengths(*[step] * 4, *one)
        assert gate([job], [0]) == []
        assert judge([job], [0], [], []).bottleneck in (Bottleneck.FRAMEWORK, Bottleneck.DATA_LOADING)


def test_a_step_that_stalls_on_one_rank_weighs_on_none() -> None:
    """The third step stalls on the second rank while the first waits for it: both are judged by the others."""
    step = {"bandwidth": 80, "dispatch": 20}
    first = with_lengths(step, step, {**step, "comm_wait": 600}, step)
    second = with_lengths(step, step, {**step, "sync": 600}, step)
    found = judge([first, second], [0, 1], [], [])
    assert (found.bottleneck, found.share) == (Bottleneck.MEMORY, 0.4)


def test_a_crowded_machine_makes_a_verdict_on_the_cpu_less_sure_than_one_on_a_device() -> None:
    """Other programs on the cores lengthen small operators on the CPU; a device computes as fast as before."""
    crowded = [Quality("machine-busy", "warning", None, {"others_share": 0.8})]
    on_cpu = verdict(*[{"compute": 90}] * 4, on_device=False)
    on_device = verdict(*[{"gemm": 90}] * 4)
    less = verdict(*[{"compute": 90}] * 4, on_device=False, quality=crowded).confidence / on_cpu.confidence
    assert less < verdict(*[{"gemm": 90}] * 4, quality=crowded).confidence / on_device.confidence - 0.1


def test_busy_workers_on_a_crowded_machine_leave_what_operators_take_in_doubt() -> None:
    """Two workers that work 75 of 80 ms share the cores that others take: compute is less sure, loading is not."""
    crowded = [Quality("machine-busy", "warning", None, {"others_share": 0.8})]
    for idle_ms, step, less in ((5, {"compute": 90}, 0.8), (200, {"compute": 90}, 1), (5, {"data_loading": 90}, 1)):
        makers = tuple(Worker(number, 40, 75 * MS, 0, 0, idle_ms * MS) for number in (0, 1))
        beside = LoaderStages(makers, 80, 0, (), 0, 0, 0.5)
        alone = ledger(*[step] * 4, on_device=False)
        sure = [judge([one], [0], [], crowded).confidence for one in ({**alone, LoaderStages: beside}, alone)]
        assert sure[0] == pytest.approx(less * sure[1])


def test_recorded_steps_a_third_as_long_as_the_others_make_a_verdict_half_as_sure() -> None:
    """Of 42 ms that most steps take, 14 were seen; up to half as long again would cost nothing."""
    seen = [Quality("unlike-others", "warning", 1 - 14 / 42, {})]
    steps = [{"compute": 67, "data_loading": 20}] * 4
    whole, part = (verdict(*steps, quality=quality, on_device=False).confidence for quality in ([], seen))
    assert part == pytest.approx(0.5 * whole)


@pytest.mark.parametrize(
    ("others", "ms", "share"),
    [(20, 40, 0.75), (19, 40, None), (20, 15, None)],  # 10 of 40 ms were seen; too few others; half as long again
)
def test_steps_that_nobody_watched_and_that_take_far_longer_are_told(others: int, ms: int, share: float | None) -> None:
    """The light window has four steps of 10 ms; the steps outside all windows take that many."""
    windows = (Window("light", (10 * MS,) * 4), Window("unwatched", (ms * MS,) * others))
    recording = replace(sketch("steps 4 x 10ms\n  main 0ms..9ms aten::mm\n")[0], run=RunInfo(windows=windows))
    told = {one.id: one for one in gate([measure(recording)], [0])}.get("unlike-others")
    assert (told and told.share_affected) == share


@pytest.mark.parametrize(
    ("lang", "sentence", "title"),
    [
        (
            "en",
            "Compute operators take 90 % of the time on the CPU (900 ms of 1.00 s).",
            "aten::mm takes 90 % of the time",
        ),
        ("zh", "计算算子占 CPU 上全程时间的 90 %（1.00 s 中的 900 ms）。", "aten::mm 占全程的 90 %"),
    ],
)
def test_without_steps_texts_speak_of_the_time(lang: str, sentence: str, title: str) -> None:
    """900 of 1,000 ms are products: of the time where no step is marked, of each step where some are; from JSON too."""
    bare = analyze_recordings(
        sketch("steps 1 x 1000ms unmarked\n  main 0ms..1ms x900 every 1ms aten::mm\n  main 999.9ms..1000ms aten::add\n")
    )
    bare = from_json(to_json(bare))
    (found,) = [one for one in bare.findings if one.rule == "dominant-operator"]
    assert spell(bare.verdict.summary, lang) == sentence
    assert finding_texts(found, lang)["title"] == title
    marked = analyze_recordings(sketch("steps 20 x 10ms\n  main 0ms..9ms aten::mm\n"))
    words = {"en": "of each step", "zh": "每步时间"}
    assert words[lang] in spell(marked.verdict.summary, lang)


def test_english_sentences_about_each_step_have_a_form_without_steps() -> None:
    """The phrase that is replaced is in every sentence of a verdict that speaks of each step."""
    texts = [text for key, text in catalogue("en").items() if key.startswith("verdict.") and "each step" in text]
    assert len(texts) > 30
    assert all(text.count("each step") == text.count("of each step") for text in texts)
