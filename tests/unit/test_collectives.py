"""Collectives per rank, matched over ranks, and who waits for whom; on sketches worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

from uncork.measure import Measured, MissingEvidence, Rank, Ranks, measure
from uncork.measure.collectives import Collectives, bus_factor, collective_name
from uncork.measure.comm_summary import comm_summary
from uncork.measure.matching import Matched, match
from uncork.measure.step_ledger import StepLedger
from uncork.measure.waiting import lateness, with_waits
from uncork.testing import sketch

MS = 1_000_000

STRAGGLER = """
    device NVIDIA A100-SXM4-80GB
    ranks 3
    steps 4 x 10ms
      rank 0: main 0ms..0.1ms aten::mm -> stream 7 0.1ms..2ms ampere_sgemm
      rank 1: main 0ms..0.1ms aten::mm -> stream 7 0.1ms..2ms ampere_sgemm
      rank 2: main 0ms..6ms aten::mm -> stream 7 6ms..8ms ampere_sgemm
      rank 0: main op 2ms..2.1ms c10d::allreduce_ -> stream 20 2.1ms..9ms ncclDevKernel_AllReduce
      rank 1: main op 2ms..2.1ms c10d::allreduce_ -> stream 20 2.1ms..9ms ncclDevKernel_AllReduce
      rank 2: main op 8ms..8.1ms c10d::allreduce_ -> stream 20 8.1ms..9ms ncclDevKernel_AllReduce
"""


def of_ranks(text: str) -> Ranks[Collectives]:
    """Return the collectives of each rank of a sketch."""
    recordings = sketch(text)
    return Ranks([Collectives.of(Rank(one, number)) for number, one in enumerate(recordings)], range(len(recordings)))


def test_a_ranks_collectives_with_their_exposed_part_and_step() -> None:
    """A collective that a kernel covers by half is exposed by half; bytes and group come from its arguments."""
    told = '{"Collective name": "allreduce", "Process Group Name": "3", "Group size": 8, "In msg nelems": 1000, '
    told += '"Out msg nelems": 1000, "dtype": "Float"}'
    (found,) = of_ranks(f"""
        device NVIDIA A100-SXM4-80GB
        steps 2 x 10ms
          main 0ms..0.1ms aten::mm -> stream 7 1ms..5ms ampere_sgemm
          main op 0.2ms..0.3ms record_param_comms {told} -> stream 20 3ms..7ms ncclDevKernel_AllReduce
    """)
    assert found.names == ("all_reduce",)
    assert found.groups == ("3",)
    assert found.dur_ns.tolist() == [4 * MS, 4 * MS]
    assert found.exposed_ns.tolist() == [2 * MS, 2 * MS]
    assert found.bytes.tolist() == [4000, 4000]
    assert found.group_size.tolist() == [8, 8]
    assert found.step.tolist() == [0, 1]


def test_sizes_on_the_cpu_come_from_shapes_those_of_another_window_by_the_order_in_a_step() -> None:
    """64 × 64 floats are 16 KiB and ten halves 20 bytes; a gather's output is larger than what it is handed."""
    step = """
        steps 2 x 10ms
          main 0ms..5ms aten::mm
          thread gloo region 4ms..5ms gloo:all_reduce {wide}
          thread gloo region 5ms..6ms gloo:all_reduce {thin}
          thread gloo region 6ms..7ms gloo:all_gather {thin}
    """
    (light,) = sketch(step.replace("{wide}", "").replace("{thin}", ""))
    wide, thin = (
        json.dumps({"Input Dims": [shape], "Input type": [kind]})
        for shape, kind in (([64, 64], "float"), ([10], "c10::Half"))
    )
    (deep,) = sketch(step.replace("{wide}", wide).replace("{thin}", thin))
    expected = [16_384, 20, -1] * 2
    assert Collectives.of(Rank(deep)).bytes.tolist() == expected
    assert Collectives.of(Rank(replace(light, deep=deep))).bytes.tolist() == expected
    assert Collectives.of(Rank(light)).bytes.tolist() == [-1] * 6
    (other,) = sketch(step.replace("{wide}", wide).replace("gloo:all_reduce {thin}", "gloo:broadcast"))
    assert Collectives.of(Rank(replace(light, deep=other))).bytes.tolist() == [-1] * 6


def test_collectives_of_a_cpu_backend_are_its_regions() -> None:
    """On the CPU the regions of gloo, on whatever thread, are the collectives."""
    (found,) = of_ranks("""
        steps 2 x 10ms
          main 0ms..5ms aten::mm
          thread gloo region 4ms..8ms gloo:broadcast
    """)
    assert found.names == ("broadcast",)
    assert found.exposed_ns.tolist() == [3 * MS, 3 * MS]


def test_a_rank_without_collectives_lacks_them() -> None:
    """Without a collective there is no such measurement."""
    (recording,) = sketch("once\n main 0ms..5ms aten::mm")
    with pytest.raises(MissingEvidence):
        Collectives.of(Rank(recording))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)", "all_reduce"),
        ("nccl:_all_gather_base", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("ncclKernel_SendRecv_RING_SIMPLE", "send_recv"),
        ("gloo:barrier", "barrier"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "collective"),
    ],
)
def test_kinds_of_collectives_are_read_from_names(name: str, kind: str) -> None:
    """Kernels, regions and operators of all backends speak of the same kinds."""
    assert collective_name(name) == kind


def test_transfer_is_the_shortest_duration_and_the_rest_is_waiting() -> None:
    """Two ranks wait 6 ms for the third in every step; moving the bytes takes 0.9 ms."""
    matched = match(of_ranks(STRAGGLER))
    assert matched.transfer_ns.tolist() == [900_000] * 4
    assert matched.wait_ns.tolist() == [[6 * MS, 6 * MS, 0]] * 4
    assert matched.waited_ns().tolist() == [[6 * MS] * 4, [6 * MS] * 4, [0] * 4]


def test_waiting_is_added_up_on_the_clock_of_the_epoch() -> None:
    """A hundred steps of today, in each of which rank 0 waits 6 ms for rank 1; rank 2 takes part in none of them."""
    now_ns, steps = 1_796_000_000_000_000_000, np.arange(100, dtype=np.int64)
    start = now_ns + np.stack([steps * 10 * MS, steps * 10 * MS + 6 * MS, np.full(100, -now_ns)], axis=1)
    dur = np.tile(np.array([7 * MS, 1 * MS, -1], np.int64), (100, 1))
    matched = Matched(("all_reduce",) * 100, steps, steps, steps, dur, np.maximum(dur, 0), start, 0)
    assert matched.waited_ns().tolist() == [[6 * MS] * 100, [0] * 100, [0] * 100]


def test_the_late_rank_is_the_one_that_the_others_wait_for() -> None:
    """The rank that causes all waiting, in all steps, is late; the share is of the step."""
    late = lateness(match(of_ranks(STRAGGLER)), (10, 11, 12), 10 * MS)
    assert late.ranks == (12,)
    assert late.wait_share == pytest.approx(0.6)
    assert late.caused_share.tolist() == [0, 0, 1]
    assert lateness(match(of_ranks(STRAGGLER)), (10, 11, 12), 5 * MS).wait_share == 1.0, "6 ms of a usual step of 5 ms"


@pytest.mark.parametrize(
    ("waits_ms", "late_steps", "chance"),
    [
        ([(6, 0), (6, 0), (6, 0)], 3, 2 / 2**3),  # one rank or the other, three times in a row
        ([(6, 0), (6, 0), (0, 2)], 2, 1.0),  # two of three or more: one of two ranks always is
        ([(6, 6, 6, 0)] * 4, 4, 4 / 4**4),
        ([(6, 6, 0, 0)] * 2, 2, 6 / 2**2),  # six choices of two of four: one of them comes out
        ([(6, 0)], 1, 0.0),  # one step only: nothing to hold against it
    ],
)
def test_few_steps_name_a_late_rank_by_chance(waits_ms: list[tuple[int, ...]], late_steps: int, chance: float) -> None:
    """The same rank last in all of few steps is what luck does, too: the binomial tail, times the choices of ranks."""
    dur = (np.array(waits_ms, np.int64) + 1) * MS
    steps = np.arange(len(dur), dtype=np.int64)
    matched = Matched(("all_reduce",) * len(dur), steps, steps, steps, dur, dur, np.zeros_like(dur), 0)
    late = lateness(matched, tuple(range(dur.shape[1])), 10 * MS)
    assert (late.steps, late.late_steps) == (len(dur), late_steps)
    assert late.chance == pytest.approx(min(chance, 1.0))


def test_ranks_that_arrive_late_together_are_late_together() -> None:
    """Two of four ranks come 6 ms after the others, one of them a little later: both are waited for."""
    matched = match(of_ranks(STRAGGLER))
    dur = np.tile([[7 * MS, 7 * MS, 1 * MS, 1_100_000]], (4, 1))
    four = replace(matched, dur_ns=dur, exposed_ns=dur, start_ns=np.zeros_like(dur))
    late = lateness(four, (0, 1, 2, 3), 10 * MS)
    assert set(late.ranks) == {2, 3}
    assert late.caused_share.tolist() == [0, 0, 0.5, 0.5]


def test_no_rank_is_late_where_waiting_is_short_or_shared() -> None:
    """Less than a tenth of the step is noise; a different rank in each step is no straggler."""
    short = STRAGGLER.replace("6ms..8ms ampere", "2.5ms..3.4ms ampere").replace("0ms..6ms", "0ms..2.5ms")
    short = short.replace("8ms..8.1ms", "2.5ms..2.6ms").replace("8.1ms..9ms", "2.9ms..9ms")
    assert lateness(match(of_ranks(short)), (0, 1, 2), 10 * MS).ranks == ()
    matched = match(of_ranks(STRAGGLER))
    turns = np.array([np.roll(row, step) for step, row in enumerate(matched.dur_ns)])
    shared = replace(matched, dur_ns=turns, exposed_ns=turns)
    assert lateness(shared, (0, 1, 2), 10 * MS).ranks == ()


def test_recordings_that_begin_later_are_aligned_by_where_their_collectives_end() -> None:
    """A rank whose recording lacks the first two collectives is matched from the third on."""
    ranks = of_ranks(STRAGGLER.replace("steps 4", "steps 6"))
    last = ranks[2]
    cut = {
        name: getattr(last, name)[2:]
        for name in ("group", "name", "bytes", "start_ns", "dur_ns", "exposed_ns", "stream", "step", "group_size")
    }
    # Its clock stands still differently, too.
    cut["start_ns"] = cut["start_ns"] + 123_456_789
    matched = match(Ranks([ranks[0], ranks[1], replace(last, **cut)], (0, 1, 2)))
    assert matched.transfer_ns.tolist() == [900_000] * 4
    assert matched.unmatched == 4


def test_waiting_is_its_own_cause_in_the_ledger() -> None:
    """Exposed communication of early ranks is waiting but for the transfer; the ledger still sums to the steps."""
    measured: list[Measured] = [measure(one) for one in sketch(STRAGGLER)]
    early, _, late = (one[StepLedger] for one in with_waits(measured, (0, 1, 2)))
    assert isinstance(early, StepLedger)
    assert isinstance(late, StepLedger)
    assert early.mean_ns("comm_wait") == 6 * MS
    assert early.mean_ns("comm") == 900_000
    assert late.mean_ns("comm_wait") == 0
    assert (early.ns.sum(axis=0) == early.step_ns).all()


def test_the_summary_tells_transfer_from_waiting_and_names_the_late() -> None:
    """Per step one all-reduce of 0.9 ms, for which two of three ranks wait 6 ms; the third causes it all."""
    summary = comm_summary([measure(one) for one in sketch(STRAGGLER)], (0, 1, 2))
    assert summary is not None
    (kind,) = summary["kinds"]
    assert (kind["name"], kind["count"]) == ("all_reduce", 1)
    assert (kind["transfer_ns"], kind["wait_ns"], kind["dur_ns"]) == (900_000, 4 * MS, 4_900_000)
    assert kind["bytes"] is None
    assert kind["bus_bytes_per_s"] is None
    assert summary["late_ranks"] == [2]
    assert [one["wait_ns"] for one in summary["by_rank"]] == [6 * MS, 6 * MS, 0]
    assert [one["caused_share"] for one in summary["by_rank"]] == [0, 0, 1]


def test_with_one_rank_the_transfer_is_not_known() -> None:
    """One rank's collectives have durations; what of them is transfer nobody can say."""
    summary = comm_summary([measure(sketch(STRAGGLER)[0])], (0,))
    assert summary is not None
    assert summary["transfer_known"] is False
    assert summary["kinds"][0]["dur_ns"] == 6_900_000
    assert comm_summary([measure(sketch("once\n main 0ms..5ms aten::mm")[0])], (0,)) is None


@pytest.mark.parametrize(
    ("name", "ranks", "factor"),
    [("all_reduce", 8, 1.75), ("all_gather", 4, 0.75), ("broadcast", 8, 1.0), ("all_reduce", 1, 1.0)],
)
def test_bus_bandwidth_factors(name: str, ranks: int, factor: float) -> None:
    """The factors of nccl-tests: 2 (n − 1) / n, (n − 1) / n, and 1."""
    assert bus_factor(name, ranks) == factor


def test_sizes_of_older_recordings_come_from_shapes_and_element_types() -> None:
    """4 x 2048 x 4096 halves are 64 MiB; without a type in the kernel's name nothing is known."""
    text = """
        device NVIDIA A100-SXM4-80GB
        steps 1 x 10ms
          main region 0ms..1ms nccl:all_reduce {"Input Dims": [[4, 2048, 4096]]}
          main runtime 0.1ms..0.2ms cudaLaunchKernel -> stream 20 1ms..5ms ncclDevKernel_AllReduce_SumTYPE_RING_LL
    """
    assert of_ranks(text.replace("TYPE", "_f16"))[0].bytes.tolist() == [64 << 20]
    assert of_ranks(text.replace("TYPE", ""))[0].bytes.tolist() == [-1]


def test_steps_are_the_same_on_ranks_that_leave_out_different_ones() -> None:
    """One rank's first step is warm-up and left out; the waiting still lands in the right steps of its ledger."""
    text = """
        device NVIDIA A100-SXM4-80GB
        ranks 2
        steps 1 x 40ms
          rank 0: main 0ms..39ms aten::mm
          rank 1: main 0ms..39ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
        steps 3 x 10ms
          main 0ms..0.1ms aten::mm -> stream 7 0.1ms..1ms ampere_sgemm
          rank 0: main op 2ms..2.1ms c10d::allreduce_ -> stream 20 2.1ms..9ms ncclDevKernel_AllReduce
          rank 1: main op 7ms..7.1ms c10d::allreduce_ -> stream 20 7.1ms..9ms ncclDevKernel_AllReduce
    """
    ranks = of_ranks(text)
    assert [one.first_step for one in ranks] == [1, 0]
    assert match(ranks).steps.tolist() == [1, 2, 3]
    early, _ = (one[StepLedger] for one in with_waits([measure(one) for one in sketch(text)], (0, 1)))
    assert isinstance(early, StepLedger)
    assert early.ns[early.causes.index("comm_wait")].tolist() == [5 * MS] * 3
