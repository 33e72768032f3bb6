"""Rules of the communication class: waiting apart from moving bytes, exposed apart from hidden."""

from pathlib import Path

import pytest

from tests.unit.rule_outcomes import clear, found, found_in, outcome
from uncork import readers
from uncork.findings import NotAssessed
from uncork.locale import LANGUAGES
from uncork.measure import Rank, measure
from uncork.measure.collectives_table import CollectivesTable
from uncork.pipeline import analyze, analyze_recordings
from uncork.report import finding_texts
from uncork.rules import rules
from uncork.testing import sketch, write_traces

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
GEMM = "ampere_sgemm_128x64_tn"


def args(elements: int, ranks: int = 2) -> str:
    """Return what newer torch tells of a collective."""
    return (
        f'{{"Collective name": "allreduce", "In msg nelems": {elements}, "Out msg nelems": {elements}, '
        f'"dtype": "Float", "Group size": {ranks}, "Process Group Name": "0"}}'
    )


def two_ranks(first_ms: float, second_ms: float, end_ms: float = 9.0) -> str:
    """Return steps in which each rank computes until its time and the reduction ends for both at once."""
    lines = ["ranks 2", "device NVIDIA A100-SXM4-80GB", "steps 4 x 10ms"]
    for rank, until in enumerate((first_ms, second_ms)):
        lines.append(f"  rank {rank}: main 0ms..0.1ms aten::mm -> stream 7 0.2ms..{until}ms {GEMM}")
        reduction = f"stream 20 {until}ms..{end_ms}ms {NCCL} {args(25_000_000)}"
        lines.append(f"  rank {rank}: main 0.2ms..0.3ms nccl:all_reduce -> {reduction}")
    return "\n".join(lines)


def test_r3_4_exposed_communication_is_held_against_40_percent():
    """5 of 10 ms: over the article's line; at 3 ms the finding stands, but below it."""
    base = f"""
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.2ms..START {GEMM}
      main 0.2ms..0.3ms nccl:all_reduce -> stream 20 2ms..9ms {NCCL} {args(25_000_000)}
    """
    high, low = (found("exposed-collectives", base.replace("START", start)) for start in ("4ms", "6ms"))
    assert (high.cost_ns_per_step, low.cost_ns_per_step) == (5_000_000, 3_000_000)
    judged = [next(one for one in finding.evidence if one.metric == "comm_share") for finding in (high, low)]
    assert [(one.threshold, one.holds) for one in judged] == [(0.4, True), (0.4, False)]


def test_r3_4_waiting_is_told_from_moving_bytes():
    """Rank 0 is there after 3 ms, rank 1 after 8: 1 ms moves bytes, 5 ms are waiting for rank 1."""
    text = two_ranks(3, 8)
    late = found("late-rank", text)
    assert (late.location.rank, late.cost_ns_per_step, late.params["cause"]) == (1, 5_000_000, "@cause.gemm")
    assert found("exposed-collectives", text).cost_ns_per_step == 1_000_000
    assert clear("late-rank", two_ranks(8, 8))


def test_a_late_rank_is_told_with_what_its_own_recording_shows(tmp_path):
    """Rank 1 loads for 5 of 10 ms by itself, rank 0 never: its line is named, and the folder as it was typed."""
    text = two_ranks(3, 8).replace(
        "1: main 0ms..0.1ms aten::mm -> stream 7 0.2ms", "1: main 5.4ms..5.5ms aten::mm -> stream 7 5.5ms"
    )
    lines = [
        "with stacks",
        text,
        "  rank 1: main 0.3ms..5.3ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "  rank 1: main 0.4ms..5.2ms data.py(23): __getitem__",
    ]
    folder = tmp_path / "two ranks"
    folder.mkdir()
    write_traces("\n".join(lines), folder)
    report = analyze([folder])
    (late,) = [one for one in report.findings if one.rule == "late-rank"]
    assert (late.location.rank, late.location.file, late.location.line) == (1, "data.py", 23)
    assert late.params["behind"]["rule"] == "starved"
    texts = {lang: finding_texts(late, lang) for lang in LANGUAGES}
    because = (
        "In its own recording: 50 % of each step waits while the main process loads the next batch (num_workers=0)"
    )
    assert because in texts["en"]["because"]
    assert "它自己的记录里：" in texts["zh"]["because"]
    for said in texts.values():
        assert f"uncork analyze '{folder}' --rank 1 -v" in said["advice"][-1]["snippet"]
    more = analyze_recordings(sketch(two_ranks(3, 8)))
    (late,) = [one for one in more.findings if one.rule == "late-rank"]
    assert (late.params["behind"]["rule"], late.location.op) == ("dominant-operator", "aten::mm")
    assert "uncork analyze RECORDING --rank 1" in finding_texts(late, "en")["advice"][-1]["snippet"]


def test_a_late_rank_is_sure_by_its_steps_and_by_what_holds_it_up():
    """Four of four steps are luck in 2 / 2⁴ of the cases; unexplained, it is likely the machine."""
    late = found("late-rank", two_ranks(3, 8))
    assert (late.params["late_steps"], late.params["steps"]) == (4, 4)
    assert late.confidence == pytest.approx(0.85 * (1 - 2 / 16))
    idle = f"""
    ranks 2
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.2ms..3ms {GEMM}
      rank 0: main 1ms..1.1ms nccl:all_reduce -> stream 20 3ms..9ms {NCCL} {args(25_000_000)}
      rank 1: main 7.9ms..8ms nccl:all_reduce -> stream 20 8ms..9ms {NCCL} {args(25_000_000)}
    """
    assert found("late-rank", idle).confidence == pytest.approx(0.85 * (1 - 2 / 16) * 0.4)


def test_one_rank_cannot_show_who_is_late():
    """With one rank's recording the rule asks for the others."""
    text = f"device NVIDIA A100\nsteps 4 x 10ms\n  stream 20 1ms..9ms {NCCL} {args(1000)}"
    result = outcome("late-rank", sketch(text))
    assert isinstance(result, NotAssessed)
    assert result.missing == ("ranks",)


def test_t03_is_exposed_and_w01_is_late(shared: Path):
    """Real jobs: collectives exposed for 64 % of the step; and 8 ranks of which 0 and 6 keep all waiting."""
    cases = shared / "corpus" / "cases"
    exposed = found_in("exposed-collectives", *(cases / "T03").iterdir())
    assert exposed.share == pytest.approx(0.638, abs=0.01)
    ranks = [measure(readers.read(path)[0]) for path in sorted((cases / "W01").iterdir())]
    (late,) = rules()["late-rank"].check(ranks, range(8), 600_000_000)
    assert late.params["late"] == "0, 6"
    assert late.params["cause"] == "@cause.dispatch"
    (moving,) = rules()["exposed-collectives"].check(ranks, range(8), 600_000_000)
    # The label's own recount: the transfer alone is 50 ms per step.
    assert moving.cost_ns_per_step == pytest.approx(50e6, rel=0.02)


@pytest.mark.parametrize("case", ["R04", "T07", "W21"])
def test_no_rank_is_late_where_none_is(shared: Path, case: str):
    """Jobs without a straggler, or of one process, have no such finding."""
    recordings = [one for path in sorted((shared / "corpus" / "cases" / case).iterdir()) for one in readers.read(path)]
    result = outcome("late-rank", recordings)
    assert result == [] or isinstance(result, NotAssessed)


def test_small_collectives_need_number_and_size():
    """Forty of 4 KB are found, ten are not, and forty large ones are not."""
    base = f"""
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.2ms..5ms {GEMM}
      stream 20 5ms..5.05ms x{{count}} every 100us {NCCL} {{args}}
    """
    assert found("small-collectives", base.format(count=40, args=args(1000))).params["median_bytes"] == 4000
    assert clear("small-collectives", base.format(count=10, args=args(1000)))
    assert clear("small-collectives", base.format(count=40, args=args(1_000_000)))


def test_slow_link_is_held_against_the_devices():
    """100 MB between two A100 (300 GB/s each way): 20 ms are 5 GB/s on the bus, a sixtieth."""
    finding = found("slow-link", two_ranks(8, 8, 28).replace("10ms", "30ms"))
    rate = next(one for one in finding.evidence if one.metric == "bus_bandwidth")
    assert rate.value == pytest.approx(100e6 * 2 * 1 / 2 / 20e-3)
    assert rate.holds
    assert clear("slow-link", two_ranks(8, 8))


def test_r5_5_every_micro_batch_but_the_last_is_for_nothing():
    """Four forward passes per optimiser step, each with a reduction of 1 ms: 3 of 4 ms could go."""
    lines = ["device NVIDIA A100-SXM4-80GB", "steps 4 x 40ms"]
    for part in range(4):
        at = 10 * part
        lines.append(
            f"  main {at}ms..{at + 0.5}ms DistributedDataParallel.forward -> stream 7 {at + 0.5}ms..{at + 8}ms {GEMM}"
        )
        lines.append(
            f"  main {at + 1}ms..{at + 1.1}ms nccl:all_reduce -> stream 20 {at + 8}ms..{at + 9}ms {NCCL} {args(1000)}"
        )
    lines.append("  main 39.5ms..39.9ms Optimizer.step#SGD.step")
    finding = found("sync-every-micro-batch", "\n".join(lines))
    assert (finding.params["micro_batches"], finding.cost_ns_per_step) == (4, 3_000_000)


def test_costs_do_not_depend_on_the_order_of_ranks():
    """Exchanging the ranks exchanges the name of the late one and nothing else."""
    one, other = found("late-rank", two_ranks(3, 8)), found("late-rank", two_ranks(8, 3))
    assert (one.location.rank, other.location.rank) == (1, 0)
    assert one.cost_ns_per_step == other.cost_ns_per_step
    assert one.gain == other.gain


def test_r2_8_the_table_of_collectives_is_per_step():
    """100 MB per step in 6 ms, of which 1 ms sticks out; a trace without sizes says None, not 0."""
    text = f"""
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..0.1ms aten::mm -> stream 7 0.2ms..8ms {GEMM}
      main 0.2ms..0.3ms nccl:all_reduce -> stream 20 3ms..9ms {NCCL} {args(25_000_000)}
    """
    (row,) = CollectivesTable.of(Rank(sketch(text)[0])).rows()
    assert (row["name"], row["calls_per_step"], row["size_bytes"]) == ("all_reduce", 1.0, 100_000_000)
    assert (row["device_ns"], row["exposed_ns"], row["group_size"]) == (6_000_000, 1_000_000, 2)
    assert row["step_share"] == 0.6  # 6 of 10 ms, though 5 of them run beside the product
    (bare,) = CollectivesTable.of(Rank(sketch(text.replace(args(25_000_000), ""))[0])).rows()
    assert (bare["size_bytes"], bare["bytes_per_s"]) == (None, None)
