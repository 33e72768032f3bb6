"""Messages between the stages of a pipeline, matched over ranks; on sketches worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.rule_outcomes import found
from uncork.measure import MissingEvidence, Rank, Ranks
from uncork.measure.messages import Messages
from uncork.measure.stages import Stages, pipelines, without_partner
from uncork.testing import sketch

MS = 1_000_000


def message(rank: int, way: str, peer: int, start: float, end: float) -> str:
    """Return the operator that starts a message and gloo's region, in which it passes and which outlasts the call."""
    operator = {"send": "c10d::send", "recv": "c10d::recv_"}[way]
    return (
        f'rank {rank}: main op {start}ms..{start + 0.05}ms {operator} {{"Concrete Inputs": ["", "", "{peer}", "0"]}}\n'
        f"rank {rank}: main region {start + 0.01}ms..{end}ms gloo:{way}"
    )


# Two micro-batches: rank 1 takes twice as long for each, so rank 0 waits to hand over the second, and for gradients.
UNEVEN = "\n".join(
    (
        "ranks 2",
        "steps 3 x 20ms",
        "rank 0: main 0ms..2ms aten::mm",
        message(0, "send", 1, 2, 2.1),
        "rank 0: main 2.1ms..4.1ms aten::mm",
        message(0, "send", 1, 4.1, 6.1),
        message(0, "recv", 1, 6.1, 12.1),
        "rank 0: main 12.1ms..14.1ms aten::mm",
        message(0, "recv", 1, 14.1, 14.2),
        "rank 0: main 14.2ms..16.2ms aten::mm",
        message(1, "recv", 0, 0, 2.1),
        "rank 1: main 2.1ms..6ms aten::mm",
        message(1, "recv", 0, 6, 6.1),
        "rank 1: main 6.1ms..12ms aten::mm",
        message(1, "send", 0, 12, 12.1),
        "rank 1: main 12.1ms..14.1ms aten::mm",
        message(1, "send", 0, 14.1, 14.2),
        "rank 1: main 14.2ms..16.2ms aten::mm",
    )
)


def of_ranks(text: str) -> Ranks[Messages]:
    """Return what each rank of a sketch sends and takes."""
    recordings = sketch(text)
    return Ranks([Messages.of(Rank(one, number)) for number, one in enumerate(recordings)], range(len(recordings)))


def moved(one: Messages, by_ns: int) -> Messages:
    """Return the messages of a rank whose clock shows another time."""
    return replace(one, start_ns=one.start_ns + by_ns, end_ns=one.end_ns + by_ns, alone_ns=one.alone_ns + by_ns)


def only(ranks: Ranks[Messages], steps: int = 3) -> Stages:
    """Return the only pipeline among ranks."""
    (stages,) = pipelines(ranks, [steps] * len(ranks))
    return stages


def test_who_waits_for_whom_is_what_is_sure_of_each_message():
    """Each message takes 0.1 ms at best, so each wait may be that much shorter than the clocks say.

    Rank 0 waits 4.1 to 5.9 ms for rank 1 to take, and 6.1 to 11.9 for it to send; rank 1 waits 0 to 1.9 ms.
    """
    stages = only(of_ranks(UNEVEN))
    assert stages.wait_ns.tolist() == [[0, 7.6 * MS], [1.9 * MS, 0]]
    assert stages.waited_ns.tolist() == [7.6 * MS, 1.9 * MS]
    assert stages.messages == 2
    assert stages.least_share == pytest.approx(1 / 3)


def test_messages_without_a_partner_are_counted():
    """Twelve messages of two ranks find each other; of a rank whose partner is not here, or unknown, none does."""
    ranks = of_ranks(UNEVEN)
    assert without_partner(ranks) == 0
    assert without_partner(Ranks([ranks[0]], [0])) == 12
    assert without_partner(Ranks([ranks[0], replace(ranks[1], unknown=1)], [0, 1])) == 25


def test_without_the_ranks_that_messages_are_for_nobody_knows_who_waits():
    """Ranks 0 and 3 of four stages send to ranks that are not here."""
    first, last = of_ranks(UNEVEN)
    with pytest.raises(MissingEvidence, match="ranks"):
        pipelines(Ranks([first, replace(last, peer=np.full(len(last), 2))], [0, 3]), [3, 3])


@pytest.mark.parametrize("ahead_ns", [-3_000_000_123, 777, 60 * 1_000 * MS])
def test_what_the_clocks_show_does_not_matter(ahead_ns: int):
    """The clock of one rank may be ahead by any time."""
    first, second = of_ranks(UNEVEN)
    shifted = moved(second, ahead_ns)
    assert only(Ranks([first, shifted], [0, 1])).wait_ns.tolist() == only(of_ranks(UNEVEN)).wait_ns.tolist()


def test_the_order_of_ranks_does_not_matter():
    """Ranks are known by their number, not by their place."""
    first, second = of_ranks(UNEVEN)
    assert only(Ranks([second, first], [1, 0])).wait_ns.tolist() == [[0, 1.9 * MS], [7.6 * MS, 0]]


def test_recordings_that_begin_later_are_matched_from_where_they_fit():
    """Rank 1 lacks the first step: its second step is matched with the second of rank 0, so the rest stays as it is."""
    first, second = of_ranks(UNEVEN)
    names = ("peer", "sent", "start_ns", "end_ns", "inside")
    cut = replace(second, **{name: getattr(second, name)[4:] for name in names})
    (stages,) = pipelines(Ranks([first, cut], [0, 1]), [3, 2])
    assert stages.wait_ns.tolist() == [[0, 2 * 7_600_000 // 3], [1_900_000, 0]]


def test_the_finding_names_the_slow_stage_and_what_even_stages_would_wait():
    """Outside communication rank 0 has 20 - 8.2 = 11.8 ms of a step, rank 1 20 - 2.4 = 17.6: 2.9 over the mean."""
    finding = found("stage-waits", UNEVEN)
    assert finding.location.rank == 1
    assert finding.cost_ns_per_step == 4_750_000
    assert finding.params["waits"] == "0 → 1: 38 %, 1 → 0: 10 %"
    assert (finding.params["slow_ns"], finding.params["mean_ns"]) == (17_600_000, 14_700_000)
    # More micro-batches: three quarters of 11.8 / 2 ms; even stages: half of 2.9 ms.
    assert finding.advice == ("micro-batches", "balance-stages")
    assert finding.gain.low == pytest.approx(0.5 * 0.75 * 5.9 / 20)
    assert finding.gain.high == pytest.approx(4.75 / 20)


def test_messages_sent_ahead_hold_nothing_up_while_their_rank_waits_to_take():
    """Rank 1 sends to rank 2 ahead, and waits for rank 0: only for that one, until it asks for nothing else."""
    text = "\n".join(
        (
            "ranks 3",
            "steps 3 x 20ms",
            "rank 0: main 0ms..8ms aten::mm",
            message(0, "send", 1, 8, 8.1),
            message(0, "recv", 1, 8.1, 12.1),
            message(1, "send", 2, 0.2, 0.3),
            message(1, "send", 2, 0.3, 15),
            message(1, "recv", 0, 1, 8.1),
            "rank 1: main 8.1ms..12ms aten::mm",
            message(1, "send", 0, 12, 12.1),
            message(1, "recv", 2, 12.1, 15.1),
            message(2, "recv", 1, 0, 0.3),
            "rank 2: main 0.3ms..14ms aten::mm",
            message(2, "recv", 1, 14, 14.1),
            message(2, "send", 1, 15, 15.1),
        )
    )
    stages = only(of_ranks(text))
    # Rank 1 for rank 0: 1 to 7.9 ms. For rank 2: 12.1 to 14.9 ms to take. What it sends ahead waits until 13.9 ms, and
    # from 0.3 to 1, 7.9 to 8.1 and 12 to 12.1 ms the rank neither computes nor waits to take.
    assert stages.wait_ns[1].tolist() == [6.9 * MS, 0, 3.8 * MS]
    assert stages.waited_ns[1] == 10.7 * MS


def test_a_light_window_knows_peers_from_the_deep_one():
    """Peers are recorded with shapes; the same messages in the same order of a step have the same."""
    light = sketch("\n".join(line.split(" {")[0] for line in UNEVEN.splitlines()))
    deep = sketch(UNEVEN)
    told = [
        Messages.of(Rank(replace(one, deep=two), place))
        for place, (one, two) in enumerate(zip(light, deep, strict=True))
    ]
    assert only(Ranks(told, [0, 1])).wait_ns.tolist() == [[0, 7.6 * MS], [1.9 * MS, 0]]
    with pytest.raises(MissingEvidence, match="peers"):
        pipelines(Ranks([Messages.of(Rank(one)) for one in light], [0, 1]), [3, 3])


def test_steps_of_a_deep_window_that_differ_tell_no_peer():
    """A send to rank 1 in one step and to rank 2 in the next: of a step without shapes nobody knows which it is."""
    (light,) = sketch("steps 1 x 10ms\n  main op 1ms..1.05ms c10d::send\n  main region 1.01ms..2ms gloo:send")
    steps = "\n".join(
        f'  main op {at}ms..{at + 0.05}ms c10d::send {{"Concrete Inputs": ["", "", "{peer}", "0"]}}\n'
        f"  main region {at + 0.01}ms..{at + 1}ms gloo:send"
        for at, peer in ((1, 1), (11, 2))
    )
    marks = "  main 0ms..10ms ProfilerStep#1\n  main 10ms..20ms ProfilerStep#2\n"
    (deep,) = sketch(f"steps 1 x 20ms unmarked\n{marks}{steps}")
    one = Messages.of(Rank(replace(light, deep=deep)))
    assert (len(one), one.unknown) == (0, 1)


def test_numbers_within_a_group_are_ranks_only_where_all_groups_number_alike():
    """In a group of ranks 2 and 3 the peer 1 is rank 3, which a CPU's trace does not say."""
    recordings = [replace(one, groups={"0": (0, 1), "1": (2, 3)}) for one in sketch(UNEVEN)]
    ranks = Ranks([Messages.of(Rank(one)) for one in recordings], [0, 1])
    with pytest.raises(MissingEvidence, match="peers"):
        pipelines(ranks, [3, 3])


def test_regions_of_a_device_name_the_peer_too():
    """``nccl:send 0->1`` and ``nccl:recv 1<-0``, as torch before 2.5 says it; facts of the message count first."""
    kernel = "ncclDevKernel_SendRecv"
    (one,) = of_ranks(f"""
        device NVIDIA A100-SXM4-80GB
        steps 1 x 10ms
          main 0ms..0.1ms nccl:send 0->1 -> stream 20 1ms..2ms {kernel}
          main 0.2ms..0.3ms nccl:recv 0<-2 -> stream 20 2ms..3ms {kernel}
          main 0.4ms..0.5ms nccl:send 0->1 -> stream 20 3ms..4ms {kernel} {{"Collective name": "send", "Dst Rank": 5}}
          main 0.6ms..0.7ms nccl:coalesced -> stream 20 4ms..5ms {kernel}
    """)
    assert one.peer.tolist() == [1, 2, 5]
    assert one.sent.tolist() == [True, False, True]
    assert one.unknown == 1


def test_messages_gathered_into_one_kernel_come_before_its_launch():
    """``batch_isend_irecv`` records each call, then launches one kernel for all since the kernel before."""
    send, take = (f'{{"Collective name": "{way}", "{key} Rank": 1}}' for way, key in (("send", "Dst"), ("recv", "Src")))
    reduction = '{"Collective name": "allreduce"}'
    (one,) = of_ranks(f"""
        device NVIDIA A100-SXM4-80GB
        steps 1 x 10ms
          main op 0ms..0.1ms record_param_comms {take}
          main 0.2ms..0.3ms nccl:coalesced -> stream 20 1ms..2ms ncclDevKernel_SendRecv
          main op 0.4ms..0.5ms record_param_comms {send}
          main op 0.5ms..0.6ms record_param_comms {take}
          main op 0.6ms..0.7ms record_param_comms {reduction} -> stream 22 1ms..2ms ncclDevKernel_AllReduce
          main 0.7ms..0.8ms nccl:coalesced -> stream 20 2ms..4ms ncclDevKernel_SendRecv
          main op 0.8ms..0.9ms record_param_comms {send} -> stream 20 4ms..5ms ncclDevKernel_SendRecv
    """)
    assert one.sent.tolist() == [False, True, False, True]
    assert one.peer.tolist() == [1] * 4
    assert ((one.end_ns - one.start_ns) // MS).tolist() == [1, 2, 2, 1]
    assert one.unknown == 0


def test_a_recording_of_the_device_alone_may_name_peers_too():
    """Newer torch repeats a message's facts at its kernel; without any, nobody knows whom it is for."""
    (one,) = of_ranks("""
        device NVIDIA A100-SXM4-80GB
        stream 20 0ms..1ms ncclDevKernel_SendRecv {"Collective name": "recv", "Src Rank": 3}
        stream 20 1ms..2ms ncclDevKernel_SendRecv
    """)
    assert (one.peer.tolist(), one.sent.tolist(), one.unknown) == ([3], [False], 1)


def test_messages_in_one_direction_make_no_pipeline_and_impossible_ones_no_clock():
    """Without answers nothing bounds a clock; messages that would arrive before they are sent, both ways, do not fit.

    Rank 0 would take 12 ms, and rank 1 would take 5 ms, before the other has sent.
    """
    first, second = of_ranks(UNEVEN)
    answers = second.sent
    names = ("peer", "sent", "start_ns", "end_ns", "inside")
    silent = replace(second, **{name: getattr(second, name)[~answers] for name in names})
    assert pipelines(Ranks([first, silent], [0, 1]), [3, 3]) == []
    early = replace(second, end_ns=np.where(answers, second.end_ns, second.end_ns - 5 * MS))
    sooner = replace(first, end_ns=np.where(first.sent, first.end_ns, first.end_ns - 12 * MS))
    with pytest.raises(MissingEvidence, match="clocks"):
        pipelines(Ranks([sooner, early], [0, 1]), [3, 3])
