"""What other choices would save, how much larger a batch would fit, what failed: held against sums by hand."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.rule_outcomes import found, outcome
from tests.unit.test_snapshot import memory_of
from uncork import readers
from uncork.measure import Rank
from uncork.measure.memory_use import MemoryUse
from uncork.measure.memory_what_if import MOST_BATCH_RATIO, Budget, InUse, Saving
from uncork.measure.snapshot_memory import SnapshotMemory
from uncork.pipeline import analyze, analyze_recordings
from uncork.render.first_screen import first_screen
from uncork.render.tables import gain
from uncork.report import finding_texts, from_json, to_json
from uncork.rules.headroom import spoken
from uncork.testing import sketch
from uncork.testing.snapshots import write_snapshot

MIB, GIB = 1 << 20, 1 << 30
CALL = "torch/nn/modules/module.py:1750:_call_impl < torch/nn/modules/module.py:1739:_wrapped_call_impl"
MODEL = f"gpt.py:88:forward < {CALL} < train.py:41:main"
BACK = "torch::autograd::generated::MmBackward0::apply < torch::autograd::Engine::thread_main"


def block(number: int, above: str = MODEL) -> list[str]:
    """Return the allocations of one block: 32 MiB of norm, 96 of a projection inside it, 32 of its output."""
    inside = f"{CALL} < {above}"
    return [
        f"alloc norm{number} 32MiB gpt.py:44:forward < {inside}",
        f"alloc up{number} 96MiB torch/nn/modules/linear.py:125:forward < {CALL} < gpt.py:45:forward < {inside}",
        f"alloc out{number} 32MiB gpt.py:46:forward < {inside}",
    ]


def back(number: int) -> list[str]:
    """Return the frees of one block in the backward pass."""
    return [f"free {name}{number} {BACK}" for name in ("out", "up", "norm")]


def forward_and_back(layers: int = 8) -> list[str]:
    """Return a step of some blocks: 160 MiB each."""
    lines = [line for number in range(layers) for line in block(number)]
    return lines + [line for number in reversed(range(layers)) for line in back(number)]


def memory(*lines: str) -> SnapshotMemory:
    """Return the memory of a sketched snapshot."""
    (recording,) = sketch("\n".join(f"snapshot {line}" for line in lines))
    return memory_of(recording.snapshot)


def saving(held: SnapshotMemory, change: str) -> Saving:
    """Return one of the savings."""
    return next(one for one in held.savings if one.change == change)


def test_the_line_that_calls_the_same_module_over_and_over():
    """Eight calls at line 88 keep 1280 MiB; each keeps its input of 32, and one call's 160 come back for a while."""
    found_saving = saving(memory("old 1GiB", *forward_and_back()), "checkpointing_calls")
    assert found_saving.location is not None
    assert (found_saving.location.file, found_saving.location.line, found_saving.calls) == ("gpt.py", 88, 8)
    assert found_saving.high_bytes == pytest.approx((1280 - 8 * 32) * MIB, abs=99)
    assert found_saving.low_bytes == pytest.approx((1280 - 8 * 32 - 160) * MIB, abs=99)


def test_a_container_of_torch_is_named_by_the_line_that_calls_it():
    """Sequential's own loop repeats, but people know the line of their own file that calls it."""
    above = f"torch/nn/modules/container.py:250:forward < {CALL} < net.py:17:forward < {CALL} < train.py:9:main"
    lines = [line for number in range(4) for line in block(number, above)]
    lines += [line for number in reversed(range(4)) for line in back(number)]
    found_saving = saving(memory("old 1GiB", *lines), "checkpointing_calls")
    assert (found_saving.location.file, found_saving.location.line, found_saving.calls) == ("net.py", 17, 4)


def test_what_is_recomputed_already_is_not_offered_again():
    """Activations made under torch.utils.checkpoint are not counted; one call alone repeats nothing."""
    inside = f"torch/utils/checkpoint.py:500:checkpoint < {MODEL}"
    lines = [line for number in range(4) for line in block(number, inside)]
    frees = [line for number in reversed(range(4)) for line in back(number)]
    for made in ([*lines, *frees], [*block(0), *back(0)]):
        assert "checkpointing_calls" not in {one.change for one in memory("old 1GiB", *made).savings}


def test_blocks_of_no_bytes_repeat_nothing():
    """Empty tensors have stacks too, and nothing to recompute."""
    lines = [f"alloc e{number} 0B m.py:3:forward < {CALL} < {MODEL}" for number in range(4)]
    assert memory("old 1GiB", *lines, "free e0 x").peak_bytes == GIB


def test_earlier_steps_count_where_the_peak_would_move():
    """Two equal steps: recomputing lowers the peak of both, not of the last one alone."""
    held = memory("old 1GiB", *forward_and_back(), *forward_and_back())
    assert saving(held, "checkpointing_calls").high_bytes == pytest.approx((1280 - 8 * 32) * MIB, abs=99)


def test_r5_2_how_much_larger_a_batch_fits_in_what_is_used():
    """1 GiB stays, 1280 MiB grow: halving what grows leaves room for twice the batch, and 8-bit state for none."""
    held = memory("old 1GiB", *forward_and_back())
    assert held.batch_ratio == pytest.approx(1.0)
    # 2304 MiB were used; 1024 of them stay; of the rest 20 % stay at best.
    assert saving(held, "checkpointing").batch_ratio == pytest.approx((2304 - 1024) / (0.2 * 1280))
    assert saving(held, "checkpointing_calls").batch_ratio == pytest.approx((2304 - 1024) / 256)


def test_the_batch_is_held_against_every_moment():
    """The peak lies in the optimiser, where nothing grows: the forward pass has room for three times the batch."""
    step = "torch/optim/adam.py:150:_init_group < torch/optim/adam.py:200:step < train.py:46:main"
    held = memory("old 1GiB", *forward_and_back(), f"alloc m 3840MiB {step}")
    assert held.peak_bytes == (1024 + 3840) * MIB
    assert held.batch_ratio == pytest.approx(3.0)


def test_a_larger_device_gives_more_room(tmp_path: Path):
    """A device of 8 GiB may be filled to 90 %: what is not reserved of it is room for a larger batch."""
    from dataclasses import replace

    from uncork.recording import Device

    (recording,) = readers.read(
        write_snapshot(["reserved 3GiB", "old 1GiB", *forward_and_back()], tmp_path / "a.pickle")
    )
    sized = replace(recording, devices=(Device(index=0, name="x", memory_bytes=8 * GIB),))
    held = SnapshotMemory.of(Rank(sized))
    assert held.capacity_bytes == 8 * GIB
    room = int(0.9 * 8 * GIB) - 3 * GIB
    assert held.batch_ratio == pytest.approx(1 + room / (1280 * MIB))
    assert held.content()["batch_ratio"] == pytest.approx(held.batch_ratio)


FAILED = [
    "reserved 3GiB",
    "old 1GiB",
    *forward_and_back(6),
    *(line for number in range(10, 18) for line in block(number)),
    f"oom 512MiB free 128MiB gpt.py:46:forward < {CALL} < {MODEL}",
]


def test_r5_2_a_failure_says_what_was_short_and_what_would_have_been_enough():
    """512 MiB asked, 128 left: 384 short. Recomputing frees 864 at least, half the batch 576 + 256 of the request."""
    held = memory(*FAILED)
    assert held.oom is not None
    assert (held.oom.short_bytes, held.oom.phase) == (384 * MIB, "forward")
    assert held.oom.held == {**dict.fromkeys(held.oom.held, 0), "activation": 1280 * MIB, "unknown": GIB}
    assert held.capacity_bytes == 3 * GIB + 128 * MIB
    rows = {row["change"]: row for row in held.content()["what_if"]}
    assert rows["checkpointing_calls"]["saved_low_bytes"] == pytest.approx(864 * MIB, abs=99)
    assert rows["half_batch"]["saved_low_bytes"] == pytest.approx(0.45 * 1280 * MIB + 256 * MIB, abs=99)
    assert {change for change, row in rows.items() if row["enough"]} == {
        "checkpointing", "checkpointing_calls", "half_batch",
    }  # fmt: skip
    assert rows["mixed_precision"]["enough"] is False
    # 2432 MiB were there for 1024 that stay and 1280 + 512 that grow; recomputing leaves 256 + 512 of those.
    assert held.batch_ratio == pytest.approx((2304 + 128 - 1024) / 1792)
    assert saving(held, "checkpointing_calls").batch_ratio == pytest.approx((2304 + 128 - 1024) / 768)


def test_a_snapshot_written_later_tells_the_same_of_the_failure():
    """Written where the exception is caught, everything of the step is freed: the failure is told as it was."""
    later = memory(*FAILED, *(f"free {name}{number} train.py:50:main" for number in range(10, 18)
                              for name in ("out", "up", "norm")))  # fmt: skip
    at_once = memory(*FAILED)
    assert later.oom == at_once.oom
    assert later.savings == at_once.savings
    assert later.allocated_bytes < at_once.allocated_bytes


def test_of_several_devices_the_one_that_failed_is_looked_at(tmp_path: Path):
    """Device 0 holds more, but the request failed on device 1, which held 1 GiB."""
    segments = [
        {"device": device, "address": device << 40, "total_size": size, "blocks": [
            {"address": device << 40, "size": size, "requested_size": size, "state": "active_allocated", "frames": []}
        ]}
        for device, size in ((0, 8 * GIB), (1, GIB))
    ]  # fmt: skip
    failed = {"action": "oom", "size": 2 * GIB, "device_free": 0, "stream": 0, "time_us": 5, "frames": []}
    path = tmp_path / "devices.pickle"
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [[], [failed]]}))
    held = memory_of(readers.read(path)[0].snapshot)
    assert (held.device, held.peak_bytes, held.oom.requested_bytes) == (1, GIB, 2 * GIB)


def test_the_devices_size_is_what_was_reserved_and_left_at_the_failure(tmp_path: Path):
    """Of 8 GiB 6 were reserved, 3 when 6 more were asked for and 5 were left, and 1 when the snapshot was written."""
    held = {"address": 1 << 40, "size": GIB, "requested_size": GIB, "state": "active_allocated", "frames": []}
    segments = [{"device": 0, "address": 1 << 40, "total_size": GIB, "blocks": [held]}]
    actions = [
        {"action": "segment_free", "addr": 2 << 40, "size": 3 * GIB},
        {"action": "oom", "size": 6 * GIB, "device_free": 5 * GIB},
        {"action": "segment_free", "addr": 3 << 40, "size": 2 * GIB},
    ]
    trace = [{**action, "stream": 0, "time_us": 5 + at, "frames": []} for at, action in enumerate(actions)]
    path = tmp_path / "caught.pickle"
    path.write_bytes(pickle.dumps({"segments": segments, "device_traces": [trace]}))
    rank = Rank(readers.read(path)[0])
    assert rank.made(SnapshotMemory).capacity_bytes == MemoryUse.of(rank).capacity_bytes == 8 * GIB
    assert MemoryUse.of(rank).used_bytes == 6 * GIB


def test_pieces_at_a_failure_are_the_gaps_between_what_is_in_use():
    """A hole of 2 GiB and 1 GiB behind the last block; afterwards everything is freed."""
    lines = [
        "reserved 6GiB",
        "alloc a 1GiB m.py:1:f",
        "alloc hole 2GiB m.py:2:f",
        "alloc b 2GiB m.py:3:f",
        "free hole x",
    ]
    held = memory(*lines, "oom 3GiB free 0B m.py:4:f", "free a x", "free b x")
    free = held.oom.free
    assert (free.pieces, free.idle_bytes, free.largest_bytes, free.split_bytes) == (2, 3 * GIB, 2 * GIB, 3 * GIB)
    assert held.oom.in_pieces


def test_scores_written_out_are_what_fused_attention_saves():
    """Two score matrices of 1 GiB; backward makes two more of their size: 2 GiB at least, 4 at most."""
    above = f"attention.py:20:forward < {CALL} < {MODEL}"
    lines = [
        f"alloc q 64MiB {above}",
        f"alloc s 1GiB attention.py:5:softmax < {above}",
        f"alloc p 1GiB attention.py:6:softmax < {above}",
        f"alloc x 1GiB torch::autograd::generated::DivBackward0::apply < {BACK}",
        f"alloc y 1GiB torch::autograd::generated::DivBackward0::apply < {BACK}",
        f"free x {BACK}", f"free y {BACK}", f"free p {BACK}", f"free s {BACK}", f"free q {BACK}",
    ]  # fmt: skip
    held = memory("old 256MiB", *lines)
    assert (saving(held, "fused_attention").low_bytes, saving(held, "fused_attention").high_bytes) == (2 * GIB, 4 * GIB)
    finding = found("activations-dominate", "\n".join(f"snapshot {line}" for line in ("old 256MiB", *lines)))
    assert finding.advice[0] == "fused-attention"
    # 2 GiB of activations and 2 GiB of temporaries, as the table of the peak has them, of 4.31 GiB.
    titles = {lang: finding_texts(finding, lang)["title"] for lang in ("en", "zh")}
    assert titles["en"].startswith("Activations and temporaries hold 94 %")
    assert titles["zh"].startswith("峰值时激活和临时内存占内存的 94 %")
    assert gain(finding, "en") == "−2.00…4.00 GiB"
    page = first_screen(
        analyze_recordings(sketch("\n".join(f"snapshot {line}" for line in ("old 256MiB", *lines)))), "zh"
    )
    assert "<b>2.00 … 4.00 GiB</b>" in page
    assert "<h1>峰值时激活和临时内存" in page


def test_an_exported_timeline_has_savings_too(tmp_path: Path):
    """At the peak 600 MiB of activations beside 100 of parameters: half to four fifths of them could go."""
    path = tmp_path / "timeline.json"
    sizes = [[0, 100 * MIB, 0, 0, 0, held * MIB, 0, 0, 0] for held in (0, 600, 0)]
    path.write_text(str([[1, 2, 3], sizes]))
    held = memory_of(readers.read(path)[0].snapshot)
    one = saving(held, "checkpointing")
    assert (one.low_bytes, one.high_bytes) == (300 * MIB, 480 * MIB)
    assert one.batch_ratio == pytest.approx(5.0)


def test_the_failure_comes_first_and_the_unfinished_step_is_no_leak():
    """Of head room the certain comes first; what the step that failed still holds is not kept beyond its use."""
    report = analyze_recordings(sketch("\n".join(f"snapshot {line}" for line in FAILED)))
    assert report.findings[0].rule == "oom-forensics"
    assert report.findings[0].advice[0] == "checkpoint"
    assert outcome("graph-retained", sketch("\n".join(f"snapshot {line}" for line in FAILED))) == []


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("en", ("frees 864 MiB … 1.00 GiB at the peak", "at most 1.83 times the batch that failed")),
        ("zh", ("峰值可省 864 MiB … 1.00 GiB", "失败批次的 1.83 倍")),
    ],
)
def test_what_it_is_worth_is_said_in_both_languages(lang: str, words: tuple[str, ...]):
    """Bytes and batch stand in one sentence; the reason names holder and remedies in the reader's words."""
    (recording,) = sketch("\n".join(f"snapshot {line}" for line in FAILED))
    report = from_json(to_json(analyze_recordings([recording]), lang))
    texts = finding_texts(report.findings[0], lang)
    assert all(word in texts["worth"] for word in words)
    assert "@" not in texts["because"]
    assert {"en": "activations", "zh": "激活"}[lang] in texts["because"]


def test_time_is_bounded_by_what_a_larger_batch_does_not_repeat():
    """A fifth of the step is dispatching: at twice the batch half of it per sample is gone, 10 % at most."""
    steps = "device NVIDIA A100-SXM4-80GB\nsteps 4 x 10ms\n  main 0ms..2ms aten::mm -> stream 7 2ms..10ms gemm"
    lines = "\n".join(f"snapshot {line}" for line in ("old 1GiB", *forward_and_back(16)))
    (recording,) = sketch(f"{steps}\n{lines}")
    held = SnapshotMemory.of(Rank(recording))
    assert held.fixed_share == pytest.approx(0.2, abs=0.01)
    finding = next(one for one in analyze_recordings([recording]).findings if one.rule == "activations-dominate")
    times = finding.params["batch_times"]
    assert finding.params["batch_time_share"] == pytest.approx(held.fixed_share * (1 - 1 / times))
    assert "less time" in spoken(finding.params, "en")
    alone = found("activations-dominate", lines)
    assert "not measured, no timed steps" in spoken(alone.params, "en")


def test_a_ratio_without_bound_ends_at_the_largest_that_means_something():
    """Where next to nothing grows, other limits come first."""
    held = memory("old 8GiB", f"alloc a 1MiB gpt.py:44:forward < {CALL} < {MODEL}", f"free a {BACK}", "alloc b 4GiB x")
    assert held.batch_ratio == MOST_BATCH_RATIO


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        (f"m.py:3:forward < {CALL} < train.py:9:main", "forward"),
        (f"cache.py:7:update < m.py:3:forward < {CALL} < utils.py:40:_sample < utils.py:9:generate < a.py:1:main",
         "generation"),
        (BACK, "backward"),
        ("torch/optim/adam.py:150:_init_group < torch/optim/adam.py:200:step < train.py:46:main", "optimizer"),
        ("m.py:3:__init__ < train.py:5:main", "start_up"),
        ("train.py:8:main", "other"),
    ],
)  # fmt: skip
def test_r5_2_the_phase_of_the_peak(frames: str, phase: str):
    """Start-up, forward, backward, optimiser, generation: by who asked for the block that made the peak."""
    assert memory("old 1GiB", f"alloc a 2GiB {frames}", "free a x").peak_phase == phase


def test_steps_without_marks_begin_with_the_optimizers_blocks():
    """Three steps, each with a scratch block of the optimiser; the program keeps 100 MiB more after each."""
    step = "torch/optim/adam.py:400:_multi_tensor_adam < torch/optim/adam.py:200:step < train.py:30:main"
    lines = ["old 1GiB"]
    for number in range(5):
        lines += [
            f"alloc kept{number} 100MiB train.py:20:main",
            f"alloc scratch{number} 1MiB {step}",
            f"alloc more{number} 1MiB {step}",
            f"free scratch{number} {step}",
            f"free more{number} {step}",
        ]
    held = memory(*lines)
    assert held.step_bytes == tuple(GIB + (100 << 20) * number for number in range(1, 6))
    assert held.content()["growth_bytes"] == 100 << 20


def test_a_program_that_ended_out_of_memory_is_told_that_first():
    """Its steps were bound by matrix products, but it ended: memory is the verdict, and its finding the first."""
    from dataclasses import replace

    from uncork.recording import RunInfo

    steps = "device NVIDIA A100-SXM4-80GB\nsteps 4 x 10ms\n  main 0ms..0.1ms aten::mm -> stream 7 1ms..9ms gemm"
    (recording,) = sketch(steps + "\n" + "\n".join(f"snapshot {line}" for line in FAILED))
    went_on = analyze_recordings([replace(recording, run=RunInfo(exit_code=0))])
    ended = analyze_recordings([replace(recording, run=RunInfo(exit_code=1))])
    assert went_on.verdict.bottleneck.value == "compute"
    assert (ended.verdict.bottleneck.value, ended.findings[0].rule) == ("memory", "oom-forensics")
    assert ended.verdict.confidence == 1.0


def test_of_several_ranks_the_one_that_failed_is_shown(tmp_path: Path):
    """Rank 0 uses more, but rank 1 failed; without a failure the one that uses most is shown."""
    write_snapshot(["old 1GiB", *forward_and_back(16)], tmp_path / "rank0.pickle")
    write_snapshot(FAILED, tmp_path / "rank1.pickle")
    assert analyze([tmp_path]).memory["rank"] == 1
    write_snapshot(["old 1GiB", *forward_and_back(4)], tmp_path / "rank1.pickle")
    assert analyze([tmp_path]).memory["rank"] == 0


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=12),
    st.integers(0, 500),
    st.floats(0, 1),
)
def test_the_largest_batch_just_fits(moments: list[tuple[int, int]], room: int, stays: float):
    """At the ratio nothing exceeds the budget, and somewhere it is reached; no saving is below nothing."""
    fixed, growing = np.array(moments, np.int64).T

    def curves(kept: Mapping[str, float]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return fixed, np.round(growing * kept.get("activation", 1.0)).astype(np.int64)

    in_use = InUse(curves, Budget(room))
    assert 0 <= in_use.saved_bytes({"activation": stays}) <= in_use.peak_bytes
    ratio = in_use.batch_ratio({"activation": stays})
    grown = curves({"activation": stays})[1]
    if ratio is None:
        assert not grown.any()
        return
    used = (fixed + ratio * grown)[grown > 0]
    assert used.max() <= in_use.peak_bytes + room + 1e-6
    assert ratio == MOST_BATCH_RATIO or used.max() == pytest.approx(in_use.peak_bytes + room)
    assert ratio >= 1 - 1e-9  # what was in use had room as it was
