"""Rules of the framework: launching, tiny operators, waits, compiling, the optimizer, Python in between."""

from pathlib import Path

import pytest

from tests.unit.rule_outcomes import clear, found, found_in, outcome
from uncork.findings import NotAssessed
from uncork.measure.python_gaps import WRAPPERS, purpose_of
from uncork.testing import sketch

LAUNCHING = """
device NVIDIA A100-SXM4-80GB
steps 4 x 1ms
  main 0us..30us x20 every 48us aten::addmm -> stream 7 20us..25us gemm_kernel
"""
TINY = """
steps 4 x 10ms
  main 0us..12us x400 every 20us aten::add
  main 9ms..9.5ms aten::mm
"""

PLAYING = """
with stacks
steps 4 x 10ms
  main 0us..9990us ppo.py(90): rollout
  main 0us..10us x120 every 75us aten::addmm
  main 11us..64us x120 every 75us ppo.py(92): <listcomp>
  main 12us..62us x120 every 75us ppo.py(30): step
  main 20us..60us x120 every 75us ppo.py(14): observe
"""


def test_python_in_short_gaps_is_the_programs_own_where_it_calls_no_operator():
    """What calls `step` takes 53 µs behind 119 calls, and all is `rollout`'s behind the last: 6307 + 1055 µs of 10 ms.

    `step` is named, not the comprehension around it nor what it calls: 120 x 50 µs. The calls have the rest:
    119 x 22 + 10 µs, and the last 10 µs.
    """
    own, calls = found("python-between-ops", PLAYING), found("tiny-operators", PLAYING)
    assert own.share == pytest.approx(0.7362, abs=0.0001)
    assert (own.location.function, own.location.line) == ("step", 30)
    assert own.params["where_share"] == pytest.approx(6 / 7.362, abs=0.0001)
    assert calls.share == pytest.approx(0.2638, abs=0.0001)


@pytest.mark.parametrize(
    ("calls", "first"),
    [
        # 150 turns of one line in one module: a loop over moments.
        ("main 0us..12us x150 every 60us aten::mm", "vectorise"),
        # The same calls, each in a call of the model of its own: tokens one after another.
        ("main region 0us..50us x150 every 60us nn.Module: Net\n  main 0us..12us x150 every 60us aten::mm", "compile"),
    ],
)
def test_a_loop_is_to_be_vectorised_before_it_is_compiled(calls: str, first: str):
    """Compiling unrolls a loop over a tensor's pieces; the calls of a model are no such loop."""
    head = "with stacks\nsteps 4 x 10ms\n  main 0us..9990us net.py(7): forward\n"
    outer = "" if "Net" in calls else "  main region 0us..9900us nn.Module: Net\n"
    finding = found("tiny-operators", f"{head}{outer}  {calls}\n")
    assert finding.advice[0] == first
    won = (0.5, 0.95) if first == "vectorise" else (0.25, 0.8)
    assert (finding.gain.low, finding.gain.high) == pytest.approx([finding.share * one for one in won])


def test_short_gaps_between_the_operators_of_one_function_are_calls():
    """Without `step` the gaps up to the last call's end, at 8935 µs, are the price of calls; the rest is `rollout`."""
    calling = "\n".join(line for line in PLAYING.splitlines() if "every 75us ppo" not in line)
    assert found("python-between-ops", calling).share == pytest.approx(0.1055, abs=0.0001)
    assert found("tiny-operators", calling).share == pytest.approx(0.8935, abs=0.0001)


def test_gaps_inside_pytorch_are_not_the_programs_python():
    """`backward` stands 5 ms in PyTorch's own code, where the machine may do something else: no line to move."""
    waiting = """
with stacks
steps 4 x 10ms
  main 0ms..9.99ms train.py(8): main
  main 0ms..4ms aten::mm
  main 4ms..9.5ms torch/_tensor.py(500): backward
  main 9.5ms..9.9ms aten::mm
"""
    clear("python-between-ops", waiting)


def test_launch_bound_charges_idle_time_under_the_host():
    """20 kernels of 5 µs in a step of 1 ms: 0.1 ms of work; the rest but the last gap is the host's pace."""
    finding = found("launch-bound", LAUNCHING)
    busy = next(one for one in finding.evidence if one.metric == "device_busy_share")
    assert (busy.value, busy.holds) == (pytest.approx(0.1), True)
    assert 0.8 <= finding.share <= 0.9
    assert finding.params["launches"] == 20


def test_scaling_all_times_scales_the_cost():
    """Twice as slow in everything costs twice the time and the same share."""
    slower = LAUNCHING.replace("1ms", "2ms").replace("30us", "60us").replace("48us", "96us")
    slower = slower.replace("20us..25us", "40us..50us")
    one, two = found("launch-bound", LAUNCHING), found("launch-bound", slower)
    assert two.cost_ns_per_step == 2 * one.cost_ns_per_step
    assert two.share == pytest.approx(one.share)


def test_r3_5_tiny_operators_show_the_articles_call_count():
    """1600 tiny calls do not reach the article's 10 000, and the finding says so while the ledger decides."""
    finding = found("tiny-operators", TINY)
    calls = next(one for one in finding.evidence if one.metric == "tiny_calls")
    # The one matrix product is no tiny operator: its median is 0.5 ms.
    assert (calls.value, calls.threshold, calls.holds) == (4 * 400, 10_000, False)
    assert finding.cost_ns_per_step == 400 * 12_000 + 399 * 8_000


@pytest.mark.parametrize(
    ("head", "advice"),
    [
        ("", {"compile", "larger-work", "vectorise"}),
        ("setting torch 1.13.1\n", {"larger-work", "vectorise"}),
    ],
)
def test_advice_knows_the_version_and_the_device(head: str, advice: set[str]):
    """No compiler before torch 2.0; graphs have a rule that knows whether the steps can be one."""
    assert set(found("tiny-operators", head + TINY).advice) == advice
    assert set(found("launch-bound", head + LAUNCHING).advice) == advice


def test_a_program_without_a_model_is_told_to_vectorise_first():
    """The recorder saw threads but no module: there is no model to compile and no batch to enlarge."""
    assert found("tiny-operators", TINY).advice == ("compile", "larger-work", "vectorise")
    assert found("tiny-operators", "setting threads 2\n" + TINY).advice == ("vectorise", "compile")
    assert found("tiny-operators", 'setting threads 2\nsetting model "Net"\n' + TINY).advice[0] == "compile"


@pytest.mark.parametrize("rule_id", ["tiny-operators", "compile-would-pay", "old-torch"])
def test_an_unrelated_thread_changes_nothing(rule_id: str):
    """A thread that drives no step may do what it likes."""
    head = "setting torch 1.13.1\n" if rule_id == "old-torch" else ""
    other = "  thread 77 0us..5us x900 every 10us aten::mul\n"
    assert found(rule_id, head + TINY + other) == found(rule_id, head + TINY)


def test_head_room_costs_nothing_itself():
    """Compiling and graphs are ways out of launch-bound: they carry a gain, and no time of their own."""
    for rule_id in ("compile-would-pay", "cuda-graph-candidate"):
        finding = found(rule_id, LAUNCHING)
        assert finding.cost_ns_per_step == 0
        assert 0 < finding.gain.low < finding.gain.high <= 0.9


def test_a_graph_is_not_advised_where_something_reads_back():
    """A read-back in the middle of the step cannot be captured."""
    reading = LAUNCHING + "  main 970us..990us aten::item\n  main 975us..985us cudaStreamSynchronize\n"
    assert clear("cuda-graph-candidate", reading + "  main 992us..995us aten::add\n")


WAITING = """
device NVIDIA A100-SXM4-80GB
steps 4 x 10ms
  main 0ms..0.1ms aten::mm -> stream 7 0.1ms..4ms gemm_kernel
  main 0.2ms..4.1ms aten::item
  main 0.5ms..4.05ms cudaStreamSynchronize
  main 4.06ms..4.1ms x{calls} every 100us aten::view
  main {next}ms..9.8ms aten::add -> stream 7 {next}ms..9.9ms elementwise_kernel
"""


def test_host_sync_charges_the_gap_and_not_the_wait():
    """The wait of 3.55 ms is the device's work; what counts is the idle time from 4 ms until new work at 8 ms."""
    finding = found("host-sync", WAITING.format(next=8, calls=39))
    assert finding.params["idle_ns"] == 4_000_000
    assert finding.location.op == "aten::item"
    assert finding.advice == ("read-later", "read-rarely")


def test_a_wait_without_a_stall_is_not_reported():
    """The same wait, and the next kernel follows at once: nothing is lost."""
    assert clear("host-sync", WAITING.format(next=4.06, calls=1))


def test_the_profilers_own_wait_is_not_the_programs():
    """When it stops, the profiler waits for the device: after the last operator of the recording."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 2 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.1ms..4ms gemm_kernel
    once
      main 0ms..5ms cudaDeviceSynchronize
    """
    assert clear("host-sync", text)


def test_a_region_that_an_optimizer_names_is_no_profiler():
    """5 ms of 10 pass below `record_function`: the program's own, unless `torch.optim` or the recorder called it."""
    text = """
    device NVIDIA A100-SXM4-80GB
    with stacks
    steps 4 x 10ms
      main 0ms..9.99ms train.py(8): main
      main 0ms..0.5ms aten::mm -> stream 7 0.2ms..3.9ms gemm_kernel
      main 3.8ms..8.95ms {caller}
      main 3.9ms..8.9ms torch/autograd/profiler.py(700): __enter__
      main 9ms..9.1ms aten::add -> stream 7 9.1ms..9.9ms elementwise_kernel
    """
    assert found("profiler-inside", text.format(caller="train.py(20): step")).location.function == "step"
    assert clear("profiler-inside", text.format(caller="torch/optim/optimizer.py(1023): zero_grad"))
    assert clear("profiler-inside", text.format(caller="uncork/capture/regions.py(88): close"))


OPTIMIZER = """
device NVIDIA A100-SXM4-80GB
{head}
steps 4 x 10ms
  main 0ms..0.2ms aten::mm -> stream 7 0.1ms..4ms gemm_kernel
  main 4ms..9.8ms Optimizer.step#{name}.step
  main 4.1ms..4.13ms x100 every 56us aten::add_ -> stream 7 4.12ms..4.125ms elementwise_kernel
"""


@pytest.mark.parametrize(
    ("head", "name", "advice"),
    [
        ("", "AdamW", ("fused", "foreach")),
        ("setting torch 2.2.0", "SGD", ("foreach",)),
        ("", "RMSprop", ("foreach",)),
    ],
)
def test_optimizer_advice_names_what_this_torch_has(head: str, name: str, advice: tuple[str, ...]):
    """SGD is fused from torch 2.3 on, RMSprop never."""
    assert found("optimizer-not-foreach-or-fused", OPTIMIZER.format(head=head, name=name)).advice == advice


def test_a_cpu_optimizer_without_a_fused_form_is_left_alone():
    """On the CPU lists are taken apart again, so for RMSprop there is nothing to advise."""
    text = "\n".join(OPTIMIZER.format(head="", name="RMSprop").split("\n")[3:])
    text = text.replace(" -> stream 7 0.1ms..4ms gemm_kernel", "")
    assert clear("optimizer-not-foreach-or-fused", text.replace(" -> stream 7 4.12ms..4.125ms elementwise_kernel", ""))


def test_wrappers_are_charged_their_own_time_only():
    """Module calls wrap the program's code; a logger's frame is for everything below it."""
    assert purpose_of("torch/nn/modules/module.py(1782): _call_impl") == ""
    assert purpose_of("torch/nn/modules/module.py(1782): _call_impl", WRAPPERS) == "module"
    assert purpose_of("logging/__init__.py(1489): info") == "log"
    assert purpose_of("model.py(12): forward") == ""


def test_a_walk_over_parameters_is_the_programs_own_work():
    """5 of 10 ms pass in `named_parameters` that `clip` asks for: no machinery of calls, and to be done once."""
    text = """
    device NVIDIA A100-SXM4-80GB
    with stacks
    steps 4 x 10ms
      main 0ms..9.99ms train.py(8): main
      main 0ms..0.5ms aten::mm -> stream 7 0.2ms..3.9ms gemm_kernel
      main 3.9ms..8.95ms ema.py(19): clip
      main 4ms..8.9ms torch/nn/modules/module.py(2663): _named_members
      main 9ms..9.1ms aten::add -> stream 7 9.1ms..9.9ms elementwise_kernel
    """
    assert clear("module-dispatch", text)
    assert found("python-between-ops", text).location.function == "clip"


def test_code_below_a_module_call_is_the_programs():
    """5 ms in a forward under nn.Module's call are Python between operators, not module dispatch."""
    text = """
    device NVIDIA A100-SXM4-80GB
    with stacks
    steps 4 x 10ms
      main 0ms..9.99ms train.py(8): main
      main 0ms..0.5ms aten::mm -> stream 7 0.2ms..3.9ms gemm_kernel
      main 3.9ms..8.9ms torch/nn/modules/module.py(1782): _call_impl
      main 3.91ms..8.89ms model.py(12): forward
      main 9ms..9.1ms aten::add -> stream 7 9.1ms..9.9ms elementwise_kernel
    """
    assert clear("module-dispatch", text)
    assert found("python-between-ops", text).location.file == "model.py"


def test_the_slow_rank_is_named_where_one_stands_out():
    """One rank launches slowly, the other is busy: the finding is about that rank, at its full cost."""
    text = """
    ranks 2
    device NVIDIA A100-SXM4-80GB
    steps 4 x 1ms
      rank 0: main 0us..30us aten::addmm -> stream 7 20us..990us gemm_kernel
      rank 1: main 0us..30us x20 every 48us aten::addmm -> stream 7 20us..25us gemm_kernel
    """
    finding = found("launch-bound", text)
    assert finding.location.rank == 1
    assert finding.cost_ns_per_step == found("launch-bound", LAUNCHING).cost_ns_per_step


def test_not_assessed_says_what_is_missing():
    """Without stacks Python's place, without a collector's record its time, without a device waits are unknown."""
    wanted = {
        "python-between-ops": "stacks",
        "garbage-collection": "gc",
        "host-sync": "device",
        "old-torch": "versions",
    }
    for rule_id, what in wanted.items():
        assert outcome(rule_id, sketch(TINY)) == NotAssessed(rule_id, (what,)), rule_id


@pytest.mark.parametrize(
    ("case", "rule_id", "least"),
    [
        ("R01/tinyops_light.json.gz", "tiny-operators", 0.55),  # of what is left without calls that stood still
        ("R02/compiled_recompile.json.gz", "recompilation", 0.9),
        ("T04/gaunernst_bert-small-uncased__1016001.json.gz", "launch-bound", 0.8),
        ("W28/dc3b0e7228dd_851.1752215573993169006.pt.trace.json.gz", "launch-bound", 0.8),
        ("W36/trace.json.gz", "compile-did-nothing", 0.1),
    ],
)
def test_labelled_recordings_get_their_rule(shared: Path, case: str, rule_id: str, least: float):
    """The rule that people would name finds at least the share that they measured."""
    assert found_in(rule_id, shared / "corpus" / "cases" / case).share >= least


def test_a_replayed_graph_is_not_launch_bound(shared: Path):
    """One launch, then 99.8 % busy: a trap of the corpus."""
    from uncork import readers

    recordings = list(readers.read(shared / "corpus" / "cases" / "T12" / "graph_execution.json.gz"))
    assert outcome("launch-bound", recordings) == []
