"""What rules advise: what fits the machine, and nothing where the recording carries no shares of a step."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.unit.rule_outcomes import clear, found, outcome
from uncork import pipeline
from uncork.capture.settings import _processor
from uncork.locale import catalogue
from uncork.measure import Rank
from uncork.measure.machine import Machine
from uncork.render import Options, renderers
from uncork.report import finding_texts, to_json
from uncork.testing import sketch

TINY = """
steps 4 x 10ms
  main 0us..12us x400 every 20us aten::add
"""
LAUNCHED = "  main 9ms..9.1ms cudaLaunchKernel\n"


def test_shares_of_a_step_mean_nothing_where_device_records_are_missing():
    """Launches without records: the device may be busy all the time, so no rule states what the host's calls cost."""
    seen = pipeline.analyze_recordings(sketch(TINY))
    assert "tiny-operators" in [one.rule for one in seen.findings]
    blind = pipeline.analyze_recordings(sketch("device NVIDIA A100-SXM4-80GB" + TINY + LAUNCHED))
    assert blind.verdict.bottleneck.value == "undetermined"
    assert [one for one in blind.findings if one.share] == []
    assert ("tiny-operators", ("device",)) in [(one.rule, one.missing) for one in blind.not_assessed]


def test_shares_of_a_step_mean_nothing_where_nothing_comes_again():
    """Five operators and no step: what they take says nothing of a job."""
    report = pipeline.analyze_recordings(sketch("main 0ms..9ms aten::mm\nmain 9ms..9.01ms x4 every 20us aten::add"))
    assert report.verdict.bottleneck.value == "undetermined"
    assert report.findings == () or all(not one.share for one in report.findings)
    assert ("dominant-operator", ("longer",)) in [(one.rule, one.missing) for one in report.not_assessed]


def test_what_to_record_is_said_in_the_words_of_the_tool_that_recorded():
    """Who used ``uncork run`` has no profiler flag to set."""
    report = pipeline.analyze_recordings(sketch("steps 4 x 10ms\n  main 0ms..9ms aten::mm"))
    assert report.how_to_record("stacks", "en") == "Record stacks: with_stack=True."
    mine = replace(report, run={**report.run, "format": "run"})
    assert "--no-stack" in mine.how_to_record("stacks", "en")
    assert "with_stack" not in str(to_json(mine)["not_assessed"])
    fixes = [{one["id"]: one["fix"] for one in to_json(two)["quality"]}["no-stacks"] for two in (report, mine)]
    assert ["with_stack" in fix for fix in fixes] == [True, False]
    assert "--no-stack" in fixes[1]


@pytest.mark.parametrize(
    ("note", "says"), [("stacks-lost-calls", "Python 3.12.5 or newer"), ("stacks-crash", "PyTorch 2.8 or newer")]
)
def test_who_cannot_have_stacks_is_told_what_would_bring_them(note, says):
    """Where Python or PyTorch is the reason there is nothing to leave out: neither for rules nor for findings."""
    report = pipeline.analyze_recordings(sketch("steps 4 x 10ms\n  main 0ms..9ms aten::mm"))
    mine = replace(report, run={**report.run, "format": "run", "notes": [note]})
    fixes = {one["id"]: one["fix"] for one in to_json(mine)["quality"]}
    told = [mine.how_to_record("stacks", "en"), fixes["no-stacks"]]
    assert [(says in one, "--no-stack" in one) for one in told] == [(True, False)] * 2
    assert says in catalogue("en")[f"note.{note}"]


@pytest.mark.parametrize(
    ("op", "head", "advice"),
    [
        ("aten::mkldnn_convolution", "", ("channels-last", "cpu-bf16", "threads", "cheaper-convolution")),
        ("aten::mm", "", ("cpu-bf16", "threads", "smaller-product")),
        ("aten::mm", "setting threads 4\nsetting cores 4\n", ("cpu-bf16", "smaller-product")),
        ("aten::normal_", "", ("draw-less",)),
        ("aten::cumsum", "setting threads 4\nsetting cores 4\n", ("kernel",)),
    ],
)
def test_advice_for_the_cpu_names_no_device(op: str, head: str, advice: tuple[str, ...]):
    """Layout, bits and threads; no more threads where all cores have one; random numbers come from one thread."""
    assert found("dominant-operator", f"{head}steps 4 x 10ms\n  main 0ms..9ms {op}\n").advice == advice


@pytest.mark.parametrize(
    ("weight", "groups", "advice"),
    [
        ("64, 256, 3, 3", 1, "cheaper-convolution"),
        ("64, 256, 1, 1", 1, "fewer-channels"),
        ("64, 64, 1, 1", 4, "fewer-channels"),
        ("256, 1, 3, 3", 256, "kernel"),
    ],
)
def test_a_convolution_is_made_smaller_where_it_can_be(weight: str, groups: int, advice: str):
    """A larger kernel can shrink, of a 1×1 only its channels; a depthwise one is what others are replaced by."""
    inputs = weight.split(",")[1].strip() if groups == 1 else str(max(groups, 64))
    shapes = f'"Input Dims": [[8, {inputs}, 56, 56], [{weight}], [], [], [], [], [], [], []]'
    concrete = f'"Concrete Inputs": ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "{groups}"]'
    op = f'aten::convolution {{{shapes}, {concrete}, "Input type": ["float", "float"]}}'
    text = f"device NVIDIA H100\nwith shapes\nsteps 4 x 10ms\n  main 0ms..1ms {op} -> stream 7 1ms..9ms cudnn_fprop\n"
    assert found("dominant-operator", text).advice[-1] == advice


def test_masks_of_dropout_are_not_drawn_before_the_step():
    """What draws a mask in each dropout is dropout's; drawn by the program, it is a random number like others."""
    drawn = "  main 1ms..9ms aten::bernoulli_\n"
    assert clear("training-mode-in-inference", f"steps 4 x 10ms\n{drawn}")
    assert found("dominant-operator", f"steps 4 x 10ms\n{drawn}").advice == ("draw-less",)
    drawn += "  backward 9.2ms..9.3ms autograd::engine::evaluate_function: MulBackward0\n"
    assert found("dominant-operator", f"steps 4 x 10ms\n{drawn}").advice == ("draw-less",)
    text = f"steps 4 x 10ms\n  main 0.5ms..9.1ms aten::dropout\n{drawn}"
    assert found("dominant-operator", text).advice == ("fewer-masks",)


def test_doubles_are_the_first_thing_to_change():
    """Single precision before smaller products, on the CPU and on a device; bf16 is not offered for doubles."""
    mm = 'aten::mm {"Input Dims": [[256, 1024], [1024, 1024]], "Input type": ["double", "double"]}'
    host = f"with shapes\nsteps 4 x 10ms\n  main 0ms..9ms {mm}\n"
    assert found("dominant-operator", host).advice == ("single", "smaller-product")
    device = f"device NVIDIA H100\nwith shapes\nsteps 4 x 10ms\n  main 0ms..1ms {mm} -> stream 7 0.2ms..8ms dgemm\n"
    assert found("dominant-operator", device).advice == ("single", "smaller-product")


def test_of_a_device_the_share_of_its_work_in_doubles_counts():
    """A product in doubles works 6 ms of 10, one in singles 2: three quarters of 8 ms, of which half at most goes."""
    mm = 'aten::mm {"Input Dims": [[64, 64], [64, 64]], "Input type": ["double", "double"]}'
    single = mm.replace("double", "float").replace("mm", "bmm")
    both = f"""device NVIDIA H100
with shapes
steps 4 x 10ms
  main 0ms..1ms {mm} -> stream 7 1ms..7ms dgemm
  main 1ms..2ms {single} -> stream 7 7ms..9ms sgemm
"""
    doubles = found("double-precision", both)
    assert (doubles.share, doubles.gain.high) == pytest.approx((0.6, 0.3))
    assert doubles.location.op == "aten::mm"


def test_a_short_step_hides_no_loading():
    """Two cores, 9 of 10 ms loading in the main process: the item comes before a worker; with a rest of 5 ms after."""
    text = """
    with stacks
    setting cores 2
    steps 4 x 10ms
      main 0ms..10ms train.py(40): train
      main 0ms..{0}ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 0.1ms..{1}ms table.py(23): __getitem__
      main {0}ms..9.9ms aten::mm
    """
    assert found("starved", text.format(9, 8.9)).advice[:2] == ("cheaper-items", "workers")
    assert found("starved", text.format(5, 4.9)).advice[:2] == ("workers", "cheaper-items")


def test_the_optimizers_calls_are_not_the_place_of_tiny_operators():
    """On the CPU its calls are a cause of their own: of 200 products and 300 additions the products are named."""
    text = """
    with stacks
    steps 4 x 20ms
      main 0ms..20ms train.py(40): train
      main 0ms..10ms net.py(12): forward
      main 0us..12us x200 every 45us aten::mm
      main region 10ms..20ms Optimizer.step#Adam.step
      main 10.1ms..10.112ms x300 every 30us aten::mul_
    """
    finding = found("tiny-operators", text)
    assert (finding.location.file, finding.location.op) == ("net.py", "aten::mm")


def test_views_and_allocations_are_not_what_is_launched_too_slowly():
    """The operator named is one that works, though ``empty`` and ``t`` are called as often and cost more."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 1ms
      main 0us..4us x20 every 48us aten::t
      main 5us..10us x20 every 48us aten::empty
      main 11us..14us x20 every 48us aten::add -> stream 7 15us..20us vectorized_elementwise_kernel
    """
    assert found("launch-bound", text).location.op == "aten::add"


def test_code_to_copy_names_the_machines_own_device():
    """``torch.autocast`` takes ``cuda`` on NVIDIA and AMD, ``npu`` on Ascend."""
    text = "{device}\nsteps 4 x 10ms\n  main 0ms..1ms aten::add -> stream 7 0.2ms..9ms vectorized_elementwise_kernel\n"
    for device, name in (("AMD Instinct MI300X", "cuda"), ("Ascend 910B", "npu"), ("Tesla T4", "cuda")):
        finding = found("bandwidth-bound-elementwise", text.format(device=f"device {device}"))
        assert finding.params["accelerator"] == name


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_code_to_copy_keeps_the_programs_own_settings(lang: str):
    """Batch and workers are those recorded, ``...`` where nothing says; a snippet never holds somebody else's."""
    text = """
    {settings}
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..4ms aten::copy_
      main 0.1ms..3.9ms cudaMemcpyAsync -> stream 7 0.2ms..3.8ms Memcpy HtoD (Pageable -> Device)
      main 4ms..4.5ms aten::mm -> stream 7 4.5ms..9.9ms ampere_sgemm_128x64_tn
    """
    known = "setting batch_size 24\n    setting num_workers 3\n    setting shuffle true"
    for settings, kept in (
        (known, "batch_size=24, shuffle=True, num_workers=3"),
        ("", "batch_size=..., shuffle=..., num_workers=..."),
    ):
        advice = finding_texts(found("pageable-copy", text.format(settings=settings)), lang)["advice"][0]
        assert advice["snippet"].startswith(f"loader = DataLoader(dataset, {kept}, pin_memory=True)\n")


def test_larger_batches_more_workers_and_optimizers_are_reckoned_from_the_recorded_ones():
    """Twice 24; six workers instead of three, all four cores instead of none; an optimizer that can be fused."""

    def kept(settings: str) -> Mapping[str, str]:
        return Machine.of(Rank(*sketch(settings + "main 0ms..9ms aten::mm"))).kept

    known = "setting batch_size 24\nsetting cores 4\n"
    some = kept(known + "setting num_workers 3\nsetting optimizer SGD\n")
    assert (some["twice_batch_size"], some["more_workers"], some["optimizer"]) == ("48", "6", "SGD")
    none = kept(known + "setting num_workers 0\nsetting optimizer Lion\n")
    assert (none["twice_batch_size"], none["more_workers"], none["optimizer"]) == ("48", "4", "AdamW")
    bare = kept("")
    assert (bare["twice_batch_size"], bare["more_workers"], bare["batch_size"]) == ("2 * batch_size", "...", "...")


def test_the_late_ranks_own_number_stands_in_the_command_to_copy():
    """Rank 2 of 3 is late: the command looks at it, not at rank 1."""
    lines = [
        f"  rank {rank}: main 0ms..0.1ms aten::mm -> stream 7 0.2ms..{8 if rank == 2 else 3}ms ampere_sgemm_128x64_tn\n"
        f"  rank {rank}: main 1ms..1.1ms nccl:all_reduce -> stream 20 {8 if rank == 2 else 3}ms..9ms "
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL\n"
        for rank in range(3)
    ]
    text = "ranks 3\ndevice NVIDIA A100-SXM4-80GB\nsteps 4 x 10ms\n" + "".join(lines)
    advice = {one["id"]: one for one in finding_texts(found("late-rank", text), "en")["advice"]}
    assert "uncork analyze RECORDING --rank 2 -v" in advice["look-at-rank"]["snippet"]


def test_a_process_with_one_thread_has_none_too_many():
    """Three workers on two cores are too many workers; the one thread of each operator is not."""
    report = pipeline.analyze_recordings(
        sketch("setting threads 1\nsetting cores 2\nsetting num_workers 3\nsteps 4 x 10ms\n  main 0ms..9ms aten::mm\n")
    )
    assert "cpu-threads-oversubscribed" in report.clear


def test_the_last_sample_of_a_program_that_has_ended_is_no_fall():
    """50 MiB more with each sample, then nothing: the process is gone."""
    grown = " ".join(f"{1024 + 50 * number}MiB" for number in range(20))
    text = f"samples process_rss_bytes {grown} 0MiB\nsteps 4 x 10ms\n  main 0ms..9ms aten::mm\n"
    assert found("host-memory-growth", text).advice[0] == "let-go"


def test_a_librarys_data_set_is_no_place_to_change():
    """``TensorDataset`` makes the items: the finding names no line of PyTorch's."""
    text = """
    setting num_workers 0
    setting dataset_file "/venv/lib/python3.11/site-packages/torch/utils/data/dataset.py"
    setting dataset_line 205
    steps 4 x 10ms
      main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 8ms..9ms aten::mm
    """
    finding = found("starved", text)
    assert finding.location.file is None
    assert finding.params["where"] == "Dataset.__getitem__"
    mine = text.replace("/venv/lib/python3.11/site-packages/torch/utils/data/dataset.py", "/home/me/data.py")
    assert found("starved", mine).location.line == 205


def test_gains_that_add_up_to_more_than_the_step_are_said_to_overlap():
    """A product in fp32 takes 0.9 of the step: TF32, 16 bits and a smaller product each give part of the same time."""
    text = """
    device NVIDIA A100-SXM4-80GB {"computeMajor": 8, "computeMinor": 0}
    steps 4 x 10ms
      main 0ms..1ms aten::mm -> stream 7 0.2ms..9.8ms ampere_sgemm_128x64_tn
    """
    report = pipeline.analyze_recordings(sketch(text))
    assert sum(one.gain.high for one in report.findings) > 1
    assert report.gains_overlap
    for form in ("terminal", "markdown"):
        told = renderers()[form](report, Options(lang="en", width=200))
        assert "gains do not add up" in told
    assert not pipeline.analyze_recordings(sketch("steps 4 x 10ms\n  main 0ms..9ms aten::mm")).gains_overlap


PROCESSOR = """processor\t: 0
model name\t: Some Processor
flags\t\t: fpu avx2 avx512f {flags}

processor\t: 1
model name\t: Another
"""


@pytest.mark.parametrize(
    ("cpuinfo", "known", "advice"),
    [
        (PROCESSOR.format(flags="amx_bf16 avx512_bf16"), ["amx_bf16", "avx512_bf16"], "cpu-bf16-here"),
        (PROCESSOR.format(flags="avx512_vnni"), [], None),
        (PROCESSOR.replace("flags", "untold"), None, "cpu-bf16"),
        ("processor\t: 0\nFeatures\t: fp asimd bf16\n", ["bf16"], "cpu-bf16-here"),
    ],
)
@pytest.mark.parametrize("dtype", ["float", "c10::BFloat16"])
def test_bf16_is_advised_where_the_processor_has_it(cpuinfo, known, advice, dtype):
    """Of a product that takes 9 of 10 ms: by its flag, without one never, and with an if where none is told."""
    host = _processor(cpuinfo.splitlines(keepends=True))
    assert host.get("cpu_bf16") == known
    shapes = f'{{"Input Dims": [[64, 64], [64, 64]], "Input type": ["{dtype}", "{dtype}"]}}'
    (recording,) = sketch(f"with shapes\nsteps 4 x 10ms\n  main 0ms..9ms aten::mm {shapes}")
    (finding,) = outcome("dominant-operator", [replace(recording, host=host)])
    wanted = advice if dtype == "float" else None
    assert [one for one in finding.advice if "bf16" in one] == ([wanted] if wanted else [])
    if wanted == "cpu-bf16-here":
        texts = {one["id"]: one["text"] for one in finding_texts(finding, "en")["advice"]}
        assert texts[wanted].endswith(f"instructions ({', '.join(known)})")


def test_what_is_compiled_once_is_no_recompilation_s_gain():
    """60 of 100 ms compile, one code first and one anew: half of the 60 % could go; one anew alone: all."""
    both = """
    steps 1 x 100ms
      main 0ms..60ms entire_frame_compile (dynamo_timed)
      main 1ms..29ms region inductor_compile_data: fn_name=compile_fx_inner, compile_id=0/0
      main 31ms..59ms region inductor_compile_data: fn_name=compile_fx_inner, compile_id=0/1
      main 70ms..99ms aten::mm
    """
    finding = found("recompilation", both)
    assert (finding.share, finding.gain.low, finding.gain.high) == pytest.approx((0.6, 0.15, 0.3))
    assert "before: 1 of 2." in finding_texts(finding, "en")["because"]
    alone = found("recompilation", both.replace("compile_id=0/0", "compile_id=0/1"))
    assert (alone.gain.low, alone.gain.high) == pytest.approx((0.3, 0.6))


def test_the_wait_for_each_batch_is_that_of_a_call():
    """A step that asks twice waits 3 ms each time, 6 of 10 in all."""
    loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    text = f"steps 4 x 10ms\n  main 0ms..3ms {loader}\n  main 3.1ms..6.1ms {loader}\n  main 7ms..9.9ms aten::mm"
    finding = found("too-few-workers", text)
    assert (finding.cost_ns_per_step, finding.params["wait_ns"]) == (6_000_000, 3_000_000)


@pytest.mark.parametrize(("trains", "advice"), [(False, "bf16-forward"), (True, "bf16")])
def test_a_program_that_only_runs_forward_is_not_told_of_a_backward_pass(advice: str, *, trains: bool):
    """Products in fp32 for 9 of 10 ms: with an optimizer's step among them it trains."""
    update = "\n  main 1.5ms..1.6ms Optimizer.step#SGD.step\n  main 1.52ms..1.58ms aten::add_" if trains else ""
    text = f"""
    device NVIDIA A100-SXM4-80GB {{"computeMajor": 8, "computeMinor": 0}}
    steps 4 x 10ms
      main 0ms..1ms aten::mm -> stream 7 0.2ms..9ms ampere_sgemm_128x64_tn{update}
    """
    finding = found("mixed-precision-unused", text)
    assert finding.advice == (advice,)
    snippet = finding_texts(finding, "en")["advice"][0]["snippet"]
    assert ("backward" in snippet) is trains


def test_advice_without_a_risk_says_nothing_of_one():
    """Of two pieces of advice one risks nothing: the terminal warns of the other only."""
    report = pipeline.analyze_recordings(sketch("with stacks\nsteps 4 x 10ms\n  main 0ms..9ms aten::mm"))
    text = renderers()["terminal"](report, Options(lang="en", verbose=True))
    assert "beware: the program runs slower while recording" in text
    assert "beware: none" not in text


def test_no_share_and_no_place_is_said_of_what_the_recording_does_not_tell():
    """Without frames nobody knows what loads: no function and no 100 %; with them, 6 of 8 ms; a wait's place alike."""
    loader = "main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    bare = f"steps 4 x 10ms\n  {loader}\n  main 8ms..9.9ms aten::mm"
    framed = f"with stacks\n{bare}\n  main 0ms..10ms train.py(4): f\n  main 1ms..7ms data.py(16): decode"
    said = [finding_texts(found("starved", text), "en")["because"] for text in (bare, framed)]
    assert said[0].endswith("Most of the loading lies in a place that the recording does not tell.")
    assert said[1].endswith("Most of the loading lies in data.py:16 (decode), 75 %.")
    waits = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.1ms..4ms gemm_kernel
      main 0.2ms..4.1ms aten::item
      main 0.3ms..0.4ms aten::_local_scalar_dense -> stream 7 4ms..4.01ms Memcpy DtoH (Device -> Pageable)
      main 0.5ms..4.05ms cudaStreamSynchronize
      main 4.2ms..8.9ms aten::add -> stream 7 8.9ms..9.9ms elementwise_kernel
    """
    because = finding_texts(found("host-sync", waits), "en")["because"]
    assert because.startswith("`aten::item` (a place that the recording does not tell) stops the host")
