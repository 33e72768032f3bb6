"""LoaderStages and what rules make of it: the recorder's own times of the loader, inside the workers too."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.rule_outcomes import clear, found, outcome
from uncork.findings import NotAssessed
from uncork.measure import Rank
from uncork.measure.loader_code import LoaderCode
from uncork.measure.loader_stages import LoaderStages
from uncork.recording import Between, Recording, RunInfo, SampleTable, SpanTable
from uncork.testing import sketch

MS = 1_000_000
WAITING = """
steps 4 x 10ms
  main 0ms..8ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
  main 8ms..9.9ms aten::mm
  loader 0ms..8ms next {"value": 0}
"""


def stages(*spans: tuple[str, int, float, float, int]) -> LoaderStages:
    """Return the stages of spans given as (stage, worker, start in ms, duration in ms, value)."""
    names = tuple(dict.fromkeys(span[0] for span in spans))
    table = SpanTable(
        stages=names,
        stage=np.array([names.index(span[0]) for span in spans]),
        worker=np.array([span[1] for span in spans]),
        start_ns=np.array([int(span[2] * MS) for span in spans]),
        dur_ns=np.array([int(span[3] * MS) for span in spans]),
        value=np.array([span[4] for span in spans]),
    )
    return LoaderStages.of(type("Rank", (), {"recording": Recording("x", "run", loader=table)})())


def test_each_worker_has_its_own_means():
    """Two workers: 6 and 2 ms per batch, the second idle three quarters of its time."""
    found_stages = stages(
        ("fetch", 0, 0, 5, 8),
        ("collate", 0, 5, 1, 100),
        ("fetch", 1, 0, 2, 8),
        ("idle", 1, 2, 6, 0),
        ("next", -1, 0, 4, 0),
        ("next", -1, 10, 4, 3),
    )
    first, second = found_stages.makers
    assert (first.busy_ns, first.idle_share) == (6 * MS, 0.0)
    assert (second.busy_ns, second.idle_share) == (2 * MS, 0.75)
    assert found_stages.workers == 2
    assert found_stages.empty_share == 0.5
    assert found_stages.busiest_share == pytest.approx(1 - 0.75 / 2)


def test_making_and_handing_over_share_the_wait():
    """A wait of 8 ms: two workers make a batch in 4 ms each, so 2 ms per batch; receiving takes 5."""
    found_stages = stages(
        ("fetch", 0, 0, 4, 8), ("fetch", 1, 0, 4, 8), ("next", -1, 0, 8, 0), ("deserialise", -1, 3, 5, 0)
    )
    assert found_stages.handover_share == pytest.approx(5 / 8)
    assert found_stages.making_share == pytest.approx(2 / 8)


def test_a_start_lasts_until_the_first_batch():
    """Starting takes 10 ms, the first batch 30 more; later waits do not count."""
    found_stages = stages(
        ("startup", -1, 0, 10, 2), ("next", -1, 11, 30, 0), ("next", -1, 50, 1, 2), ("fetch", 0, 12, 5, 8)
    )
    assert found_stages.startup_ns == (40 * MS,)


def test_ready_batches_that_take_long_to_receive_are_no_lack_of_workers():
    """The queue is full and the workers idle: receiving is charged, the workers are not."""
    text = WAITING.replace('{"value": 0}', '{"value": 3}')
    text += "  loader 2ms..8ms deserialise\n  loader 0 0ms..1ms fetch\n  loader 0 1ms..10ms idle\n"
    assert clear("too-few-workers", text)
    assert found("slow-handover", text).cost_ns_per_step == 6 * MS


def test_busy_workers_whose_batches_are_ready_are_no_lack_of_workers():
    """The worker never idles; batches are ready at each request, or at none, which is a lack."""
    ready = WAITING.replace('{"value": 0}', '{"value": 3}')
    busy = "  loader 2ms..8ms deserialise\n  loader 0 0ms..10ms fetch\n"
    assert clear("too-few-workers", ready + busy)
    assert found("too-few-workers", WAITING + busy)


def test_one_wait_is_for_workers_that_are_too_few_or_may_not_work_ahead():
    """No batch is ever ready: workers that idle half of the time may not work ahead, ones that never do are too few."""
    idle = WAITING + "  loader 0 0ms..5ms fetch\n  loader 0 5ms..10ms idle\n"
    busy = WAITING + "  loader 0 0ms..10ms fetch\n"
    assert clear("too-few-workers", idle)
    assert found("no-prefetch", idle)
    assert found("too-few-workers", busy)
    assert clear("no-prefetch", busy)


def test_items_are_not_blamed_for_a_wait_that_is_not_theirs():
    """Collation is nine tenths of making a batch, and making one is 1 of 8 ms of the wait."""
    slow = WAITING + "  loader 0 0ms..0.8ms fetch\n  loader 0 0.8ms..8ms collate\n"
    quick = WAITING + "  loader 0 0ms..0.1ms fetch\n  loader 0 0.1ms..0.5ms collate\n  loader 0 1ms..10ms idle\n"
    assert found("slow-collate", slow).cost_ns_per_step == pytest.approx(8 * MS * 0.9)
    assert clear("slow-collate", quick)


def test_the_users_collate_function_is_named_whatever_it_is_called():
    """The recorder read the function off the loader; PyTorch's own is nobody's to change."""
    slow = WAITING + "  loader 0 0ms..0.8ms fetch\n  loader 0 0.8ms..8ms collate\n"
    seen = 'setting collate_file "{file}"\nsetting collate_line 7\nsetting collate_function "pad"\n'
    place = found("slow-collate", seen.format(file="/home/me/train.py") + slow).location
    assert (place.file, place.line, place.function) == ("/home/me/train.py", 7, "pad")
    torch = "/usr/lib/python3/site-packages/torch/utils/data/_utils/collate.py"
    default = found("slow-collate", seen.format(file=torch) + slow)
    assert (default.location.file, default.advice) == (None, ("batched-items",))
    assert found("slow-collate", slow).advice == (
        "pad-once",
        "same-shape",
        "batched-items",
    )  # whose it is, nothing tells


def test_where_batches_were_ready_a_longer_queue_gives_nothing():
    """Each request found three batches: what the step waits for then is taking one over, however idle the workers."""
    spans = "  loader 0 0ms..1ms fetch\n  loader 0 1ms..9ms idle\n"
    ready = WAITING.replace('next {"value": 0}', 'next {"value": 3}')
    assert ready != WAITING
    assert clear("no-prefetch", ready + spans)


def test_restarts_take_their_part_of_the_wait_for_themselves():
    """What the starts after the first take is charged to them, and only the rest to a queue that is too short."""
    spans = "  loader 0 0ms..1ms fetch\n  loader 0 1ms..9ms idle\n"
    starts = "  loader 9ms..9.9ms startup\n"
    assert found("no-prefetch", WAITING + spans).cost_ns_per_step == 8 * MS
    # Three starts last 0.9 ms and the 8 ms until the next step has its batch, the fourth 0.9: without the first
    # 18.7 ms in four batches.
    again_ns = int(18.7 * MS / 4)
    assert found("worker-restart-each-epoch", WAITING + spans + starts).cost_ns_per_step == again_ns
    assert found("no-prefetch", WAITING + spans + starts).cost_ns_per_step == 8 * MS - again_ns


def test_starts_are_a_part_of_the_time_between_steps_too():
    """Four steps of 10 ms with 30 ms between them: of 40 ms the starts take their part, and no more than that."""
    spans = "  loader 0 0ms..1ms fetch\n  loader 0 1ms..9ms idle\n  loader 9ms..9.9ms startup\n"
    (recording,) = sketch(WAITING + spans)
    beside = replace(recording, run=replace(recording.run or RunInfo(), between=Between(4, 40 * MS, 120 * MS)))
    (finding,) = outcome("worker-restart-each-epoch", [beside])
    # 18.7 ms in four batches, as above, of 40 ms: 11.7 %.
    assert finding.share == pytest.approx(18.7 / 4 / 40, rel=1e-3)


@pytest.mark.parametrize(("used", "crowded"), [(0.95, True), (0.4, False)])
def test_workers_that_leave_the_cores_idle_take_no_turns(used: float, crowded: bool) -> None:
    """Four workers on two cores: with 5 % of the cores free they take turns, with 60 % they wait for something else."""
    (recording,) = sketch(WAITING + "setting num_workers 4\nsetting cores 2\n")
    when = np.arange(3)
    series = {f"cpu_core_share/{core}": (when, np.full(3, used)) for core in range(2)}
    samples = SampleTable({**series, "process_cpu_cores": (when, np.full(3, 2 * used))})
    found_some = outcome("too-many-workers", [replace(recording, samples=samples)]) != []
    assert found_some is crowded


@pytest.mark.parametrize(
    ("ran_ms", "queued_ns", "wanted", "crowded"),
    [(6, 0, 2.4, True), (2, 6 * MS, 3.2, True), (1, 0, 0.4, False), (1, 3 * MS, 0.64, False), (1, -1, None, True)],
)
def test_workers_that_sleep_take_no_turns(ran_ms: int, queued_ns: int, wanted: float | None, crowded: bool) -> None:
    """Four workers on two cores, 8 of 10 ms in a batch: of those that run for 6 four want 2.4 cores, for 1 only 0.4.

    What they stood in the queue is no want: 2 ms of the 2 that are left are all of the work, 1 of 5 a fifth.
    """
    spans = [("fetch", worker, 0, 8, 16) for worker in range(4)] + [("idle", worker, 8, 2, 0) for worker in range(4)]
    spans += [("ran", worker, 0, ran_ms, queued_ns) for worker in range(4)]
    assert stages(*spans).cores_wanted == (None if wanted is None else pytest.approx(wanted))
    text = WAITING + "setting num_workers 4\nsetting cores 2\n"
    text += "".join(
        f'  loader {worker} {start}ms..{start + ms}ms {name} {{"value": {value}}}\n'
        for name, worker, start, ms, value in spans
    )
    assert (outcome("too-many-workers", sketch(text)) != []) is crowded


def test_workers_that_sleep_may_be_more_than_the_cores() -> None:
    """One worker of two cores takes 9 ms for a batch, ran for 1 of them: four hide most of it behind the 2 ms left."""
    text = WAITING + "setting num_workers 1\nsetting cores 2\n  loader 0 0ms..9ms fetch\n"
    finding = found("too-few-workers", text + '  loader 0 0ms..1ms ran {"value": 0}\n')
    assert (finding.params["workers"], finding.advice[0]) == (4, "more-workers")
    assert found("too-few-workers", text + '  loader 0 0ms..8ms ran {"value": 0}\n').advice[0] == "cheaper-items"


IN_MEMORY = """
with stacks
steps 4 x 10ms
  main python 0ms..10ms train.py(40): train
  main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main python 0.1ms..5.9ms torch/utils/data/_utils/fetch.py(49): fetch
  main python 0.2ms..5.8ms torch/utils/data/dataset.py(206): __getitem__
  main python 6ms..7.9ms torch/utils/data/_utils/collate.py(118): collate
  main 8ms..9.9ms aten::mm
"""


def test_a_loader_in_which_nothing_but_torch_runs_is_no_lack_of_stacks():
    """Tensors in memory: what the items' stages cost is known, and it is nothing; 1.9 of the 7.8 ms are collation's."""
    (recording,) = sketch(IN_MEMORY)
    code = Rank(recording).made(LoaderCode)
    assert {part.file for part in code.parts} == {""}
    assert code.top() is None
    assert code.share("collate") == pytest.approx(1.9 / 8)
    for rule_id in ("slow-read", "slow-decode", "slow-augmentation"):
        assert clear(rule_id, IN_MEMORY), rule_id
    bare = "\n".join(line for line in IN_MEMORY.splitlines() if " python " not in line)
    assert outcome("slow-read", sketch(bare)) == NotAssessed("slow-read", ("stacks",))


def _quick(text: str) -> str:
    """Return a sketch whose times are a fiftieth: a step of 0.2 ms."""
    times = re.sub(r"(\d+(?:\.\d+)?)ms", lambda found: f"{float(found[1]) * 20:g}us", text)
    return re.sub(r"steps 4 x [\d.]+us", "steps 4 x 200us", times)


def test_batches_that_are_made_faster_than_workers_hand_them_over_are_taken_whole():
    """Of a step of 0.2 ms 0.16 wait for 8 rows of a tensor; a worker's batch takes 0.3 ms to receive."""
    slow = found("starved", IN_MEMORY)
    assert slow.advice[0] == "workers"
    quick = found("starved", _quick(IN_MEMORY))
    assert quick.advice == ("whole-batches",)
    assert (quick.gain.low, quick.gain.high) == (0.0, pytest.approx(0.8 * 0.8))
    own = _quick(IN_MEMORY.replace("torch/utils/data/dataset.py(206)", "data.py(8)"))
    assert found("starved", own).advice == ("cheaper-items", "cache")
