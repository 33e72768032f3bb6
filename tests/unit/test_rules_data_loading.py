"""Rules of data loading: what they charge, whom they name, and what they advise on which machine."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.unit.rule_outcomes import clear, found, found_in, outcome
from uncork.findings import NotAssessed
from uncork.measure import Rank
from uncork.measure.loader_code import ONE_LINE, LoaderCode
from uncork.measure.loader_functions import parts_of_functions
from uncork.measure.loader_words import decoded_as, stage_of
from uncork.measure.machine import Machine
from uncork.recording import FunctionTable, Recording, RunInfo, StackSample
from uncork.report import finding_texts
from uncork.testing import sketch

MS = 1_000_000
SINGLE = """
steps 4 x 10ms
  main 0ms..7ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main 7ms..9.9ms aten::mm
"""
MULTI = SINGLE.replace("Single", "Multi").replace("Process", "Processing", 1)


def machine(**facts: object) -> Machine:
    """Return the machine of a recording with some facts about host and program."""
    settings = {name: value for name, value in facts.items() if name != "cores"}
    host = {"cores": facts["cores"]} if "cores" in facts else {}
    recording = Recording("x", "run", host=host, run=RunInfo(settings=settings))
    return Machine.of(type("Rank", (), {"recording": recording})())


def test_r3_3_starved_charges_the_ledgers_loading():
    """7 of 10 ms are in the loader: share 0.7, and the article's host threshold of a half holds."""
    finding = found("starved", SINGLE)
    assert (finding.cost_ns_per_step, round(finding.share, 6)) == (7_000_000, 0.7)
    host = next(one for one in finding.evidence if one.metric == "loader_host_share")
    assert (host.threshold, host.holds) == (0.5, True)


def test_starved_names_the_data_set_where_no_function_of_it_was_seen():
    """Without stacks the settings still say where the data set makes an item."""
    place = found("starved", "setting dataset_file data.py\nsetting dataset_line 14\n" + SINGLE).location
    assert (place.file, place.line, place.function) == ("data.py", 14, "__getitem__")
    assert place.op == "enumerate(DataLoader).__next__"


def test_r3_3_starved_device_is_under_30_percent_busy():
    """On a device the evidence is its utilisation against the article's 30 %."""
    text = """
    device NVIDIA A100-SXM4-80GB
    steps 4 x 10ms
      main 0ms..7ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 7ms..7.2ms aten::mm -> stream 7 7.1ms..9.1ms gemm_kernel
    """
    busy = next(one for one in found("starved", text).evidence if one.metric == "device_busy_share")
    assert (busy.value, busy.threshold, busy.holds) == (pytest.approx(0.2), 0.3, True)


@pytest.mark.parametrize(
    ("cores", "workers", "share"),
    [
        # Loading takes 7 ms, the rest of a step 3: three workers hide it wholly, and receiving a batch takes 0.3 ms.
        (16, 3, 0.67),
        # Two cores: one worker, and its 7 ms remain of 10, with the 0.3.
        (2, 1, 0.27),
    ],
)
def test_advice_never_asks_for_more_workers_than_cores(cores: int, workers: int, share: float):
    """The number advised is the smallest that hides the loading, and one core stays with the main process."""
    finding = found("starved", f"setting cores {cores}\n" + SINGLE)
    assert finding.params["workers"] == workers
    assert finding.gain.high == pytest.approx(share)
    assert "workers" in finding.advice


def test_one_core_is_not_told_to_use_workers():
    """On one core a worker only takes turns with the main process."""
    assert found("starved", "setting cores 1\n" + SINGLE).advice == ("cheaper-items", "cache")


def test_too_few_workers_only_where_there_are_workers():
    """The same wait with workers is another rule's, and the single-process rule is clear of it."""
    assert clear("starved", MULTI)
    assert clear("too-few-workers", SINGLE)
    finding = found("too-few-workers", "setting num_workers 2\nsetting cores 16\n" + MULTI)
    # Two workers make a batch per 10 ms, so each takes 20 ms; 3 ms of step are left: 20 / 3 workers.
    assert finding.params["workers"] == 7
    assert finding.advice[0] == "more-workers"


def test_workers_that_fill_the_cores_get_no_company():
    """With as many workers as cores, more are not advised."""
    finding = found("too-few-workers", "setting num_workers 2\nsetting cores 2\n" + MULTI)
    assert finding.advice == ("cheaper-items", "cache")
    assert finding.gain.low == 0


@pytest.mark.parametrize(("long", "read_share"), [(1, 4 / 4.4), (4, 4 / 64.36)])
def test_a_call_that_stood_still_is_no_stage(long: int, read_share: float):
    """Forty items: reading takes 0.1 ms, making a tensor 0.01, but 15 where it stood still.

    Once, it counts as the 0.01 of the others: 4 of 4.4 ms are reading; in four of forty it comes again: 4 of 64.36.
    """
    lines = ["with stacks", "steps 1 x 100ms"]
    lines.append("  main 0ms..70ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    at = 0.0
    for item in range(40):
        took = 15.0 if item < long else 0.01
        lines.append(f"  main {at:g}ms..{at + 0.1 + took:g}ms data.py(16): __getitem__")
        lines.append(f"  main {at:g}ms..{at + 0.1:g}ms <built-in method read of _io.BufferedReader object>")
        lines.append(f"  main {at + 0.1:g}ms..{at + 0.1 + took:g}ms <built-in method as_tensor of type object>")
        at += 0.1 + took
    code = LoaderCode.of(Rank(sketch("\n".join(lines))[0]))
    parts = {part.stage: part.share for part in code.parts if part.file}
    assert parts["read"] / (parts["read"] + parts["to_tensor"]) == pytest.approx(read_share, rel=0.01)


DECODING = """
  main 0.1ms..6.9ms torch/utils/data/_utils/fetch.py(49): fetch
  main 0.2ms..6.8ms data.py(16): tokenize
"""


def test_a_function_is_named_once():
    """What tokenises has a finding of its own: beside it only workers are advised, and worth what they hide.

    7 of 10 ms are loading: one worker, as many as two cores bear, leaves the longer side and 0.3 ms to receive it.
    """
    frames = SINGLE.lstrip("\n").replace("steps", "with stacks\nsteps", 1) + DECODING.lstrip("\n")
    (named,) = outcome("slow-decode", sketch("setting cores 2\n" + frames))
    assert (named.location.function, named.params["where"]) == ("tokenize", "data.py:16 (tokenize)")
    workers = found("starved", "setting cores 2\n" + frames)
    assert workers.advice == ("workers",)
    assert workers.gain.high == pytest.approx(0.27)
    assert named.gain.high == pytest.approx(0.7 * 6.6 / 7 * 0.9, rel=0.05)
    # One core has no room for a worker: then both say what there is to say.
    assert found("starved", "setting cores 1\n" + frames).advice == ("cheaper-items", "cache")


def test_idle_workers_are_not_too_few():
    """Where the recorder saw the workers idle most of the time, their number is not the reason."""
    spans = '  loader 0 0ms..1ms fetch {"value": 8}\n  loader 0 1ms..10ms idle\n'
    assert clear("too-few-workers", MULTI + spans)


def test_a_start_of_workers_is_not_their_number():
    """A wait that follows the making of an iterator is charged to starting workers."""
    text = """
    steps 4 x 10ms
      main 0ms..0.1ms aten::randperm
      main 0.2ms..7ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
      main 7ms..9.9ms aten::mm
    """
    assert clear("too-few-workers", text)
    assert found("worker-restart-each-epoch", text).params["start_ns"] == 6_800_000


def test_straggling_worker_is_named_with_the_part_that_it_causes():
    """One worker takes 8 ms, three take 2: 6 of 8 parts of the wait would go."""
    text = "steps 4 x 10ms\n" + MULTI.split("\n", 2)[2]
    text += "".join(f"  loader {n} 0ms..{8 if n == 3 else 2}ms fetch\n" for n in range(4))
    finding = found("straggling-worker", text)
    assert finding.params["worker"] == "3"
    assert finding.cost_ns_per_step == pytest.approx(7_000_000 * 0.75)


def test_no_loader_is_clear_and_not_unknown():
    """A program that shows its operators and no loader has no fault of loading; only shapes stay unknown."""
    text = "steps 4 x 10ms\n  main 0ms..9.9ms aten::mm"
    for rule_id in ("starved", "too-few-workers", "slow-read", "slow-collate", "no-prefetch", "too-many-workers"):
        assert clear(rule_id, text), rule_id
    assert outcome("wrong-dtype", sketch(text)) == NotAssessed("wrong-dtype", ("shapes",))


def test_r5_4_reading_and_preprocessing_are_told_apart():
    """What a function does is read from the file first, from the name second, from nothing else."""
    known = {
        ("", "<built-in method read of _io.BufferedReader object>"): "read",
        ("", "<built-in method decode of ImagingDecoder object>"): "decode",
        ("", "<built-in method resize of ImagingCore object>"): "augment",
        ("~", "<method 'encode_batch' of 'tokenizers.Tokenizer' objects>"): "decode",
        ("site-packages/transformers/tokenization_utils_tokenizers.py", "_encode_plus"): "decode",
        ("~", "<method 'encode' of 'str' objects>"): "",
        ("~", "<built-in method torch.tensor>"): "to_tensor",
        ("torchvision/transforms/functional.py", "hflip"): "augment",
        ("torch/utils/data/_utils/collate.py", "default_collate"): "collate",
        ("torch/utils/data/_utils/fetch.py", "fetch"): "",
        ("webdataset/filters.py", "_batched"): "",
        ("webdataset/tariterators.py", "tar_file_iterator"): "read",
        ("tarfile.py", "frombuf"): "decode",
        ("data.py", "decode_image"): "decode",
        ("data.py", "load_file"): "read",
        ("data.py", "__getitem__"): "",
        ("", "<built-in function sleep>"): "read",
        ("", "aten::select"): "",
    }
    assert {key: stage_of(*key) for key in known} == known


def functions() -> FunctionTable:
    """Return a profile: fetch (100 ms) calls __getitem__ (90), which calls decode (60) and read (20)."""
    rows = [
        ("torch/utils/data/_utils/fetch.py", "fetch", 10, 100),
        ("/home/me/data.py", "__getitem__", 10, 90),
        ("/home/me/data.py", "decode", 60, 60),
        ("~", "<method 'read' of '_io.BufferedReader' objects>", 20, 20),
        ("/home/me/train.py", "forward", 500, 500),
    ]
    ms = 1_000_000
    return FunctionTable(
        file=tuple(row[0] for row in rows),
        line=np.array([49, 23, 16, 0, 7]),
        name=tuple(row[1] for row in rows),
        calls=np.ones(5, np.int64),
        self_ns=np.array([row[2] * ms for row in rows]),
        total_ns=np.array([row[3] * ms for row in rows]),
        edge_caller=np.array([0, 1, 1]),
        edge_callee=np.array([1, 2, 3]),
        edge_total_ns=np.array([90, 60, 20]) * ms,
        edge_calls=np.ones(3, np.int64),
    )


def test_cprofile_gives_each_function_its_own_part_and_its_libraries():
    """__getitem__ has 10 ms of its own and 20 in reading, decode 60; what the loader does not call is left out."""
    parts = {(row[2], row[3]): row[4] for row in parts_of_functions(functions())}
    assert parts == {
        ("__getitem__", ""): pytest.approx(0.1),
        ("__getitem__", "read"): pytest.approx(0.2),
        ("decode", "decode"): pytest.approx(0.6),
    }


def test_sampled_lines_make_a_function_exact():
    """The line that samples saw most replaces the function's first, across spellings of the path."""
    (recording,) = sketch(SINGLE)
    samples = (
        StackSample("main", "/home/me/data.py", 18, "decode", 40),
        StackSample("main", "/home/me/data.py", 17, "decode", 10),
    )
    rank = type("Rank", (), {})()
    rank.recording = Recording("x", "run", recording.events, functions=functions(), stacks=samples)
    from uncork.timeline import Timeline

    rank.timeline = rank.deep = Timeline(rank.recording)
    top = LoaderCode.of(rank).top()
    assert top is not None
    assert (top.function, top.line, round(top.share, 6)) == ("decode", 18, 0.6)


def test_machine_reads_cores_version_and_device():
    """Facts of host and program; what nothing says stays unknown."""
    assert machine(cores=2).cores == 2
    assert machine(torch="2.13.0+cpu").torch == (2, 13)
    assert machine().num_workers is None
    assert machine().device == "cpu"


def test_starved_in_a_real_recording_names_the_line(shared: Path):
    """A CPU program with num_workers=0 and stacks: the item's function is named, and takes most of the loading."""
    path = shared / "corpus" / "recordings" / "cpu-2.13" / "loader_nw0_stack.json.gz"
    finding = found_in("starved", path)
    assert (finding.location.file, finding.location.line, finding.location.function) == ("loader.py", 23, "__getitem__")
    assert finding.share > 0.7


@pytest.mark.parametrize(
    ("case", "rule_id", "least"),
    [
        ("R05/loader_nw0.json.gz", "starved", 0.8),
        ("R06/loader_nw2.json.gz", "too-few-workers", 0.5),
        ("R07/loader_nw2_iterable.json.gz", "too-few-workers", 0.8),
        ("W13/resnet_kineto.json.gz", "too-few-workers", 0.3),  # of 0.46; the rest is the start of the workers
        ("W17/trace.json.gz", "starved", 0.75),
        ("K01/worker0.1623143089861.pt.trace.json.gz", "starved", 0.3),
    ],
)
def test_labelled_recordings_get_their_rule(shared: Path, case: str, rule_id: str, least: float):
    """The rule that people would name finds at least the share that they measured."""
    assert found_in(rule_id, shared / "corpus" / "cases" / case).share >= least


@pytest.mark.parametrize(
    ("function", "stage"), [("loadtxt", "decode"), ("_read", "decode"), ("genfromtxt", "decode"), ("load", "read")]
)
def test_numbers_from_text_are_decoded(function: str, stage: str) -> None:
    """`loadtxt` turns text into numbers, which is work; `load` waits for the disk."""
    assert stage_of("numpy/lib/_npyio_impl.py", function) == stage
    assert stage_of("/usr/lib/python3/site-packages/numpy/lib/npyio.py", function) == stage


@pytest.mark.parametrize(
    ("frames", "advice"),
    [
        (["text.py(12): tokenize"], ["cache", "whole-batch"]),
        (["data.py(16): decode", "transformers/tokenization_utils_fast.py(5): _encode_plus"], ["cache", "whole-batch"]),
        (["data.py(16): decode", "PIL/ImageFile.py(5): load"], ["cache", "smaller", "faster-decoder"]),
        (["data.py(16): decode", "json/decoder.py(5): decode"], ["cache", "faster-parser"]),
        (["data.py(16): decode"], ["cache", "whole-batch", "smaller", "faster-decoder", "faster-parser"]),
    ],
)
def test_advice_on_decoding_follows_what_is_decoded(frames: list[str], advice: list[str]) -> None:
    """By the names of functions that run inside the loader; where none tells, all of it is said."""
    lines = [f"  main 0.{place + 2}ms..7.{8 - place}ms {frame}" for place, frame in enumerate(frames)]
    finding = found(
        "slow-decode",
        "with stacks\nsteps 4 x 10ms\n"
        "  main 0ms..10ms train.py(40): train\n"
        "  main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__\n"
        "  main 0.1ms..7.9ms torch/utils/data/_utils/fetch.py(49): fetch\n"
        + "\n".join(lines)
        + "\n  main 8ms..9.9ms aten::mm\n",
    )
    assert list(finding.advice) == advice


def test_a_folder_of_the_users_does_not_say_what_is_decoded() -> None:
    """Only libraries' paths count, and functions' names as whole words."""
    assert decoded_as("/home/me/av/data.py", "load") == ""
    assert decoded_as("/usr/lib/python3/site-packages/av/container.py", "decode") == "pictures"
    assert decoded_as("/home/me/data.py", "imagine") == ""
    assert decoded_as("/home/me/data.py", "open_image") == "pictures"


def test_what_a_function_does_counts_wholly_where_it_is_made_cheaper():
    """Two cores and a step of 1 ms: of 9 ms the item takes 8.1, 2 of them in making tensors: 0.95 × 0.81 at best."""
    text = """
    with stacks
    setting cores 2
    steps 4 x 10ms
      main 0ms..10ms train.py(40): train
      main 0ms..9ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 0.1ms..8.9ms torch/utils/data/_utils/fetch.py(49): fetch
      main 0.2ms..8.3ms table.py(23): __getitem__
      main 6ms..8ms <built-in method tensor of type object at 0x7f>
      main 9ms..9.9ms aten::mm
    """
    finding = found("starved", text)
    assert (finding.gain.low, finding.gain.high) == (pytest.approx(0.95 * 0.81 / 2), pytest.approx(0.95 * 0.81))
    assert finding.advice[0] == "cheaper-items"


@pytest.mark.parametrize(
    ("inside", "advice", "said"),
    [
        ("  main 0.4ms..5ms <built-in method resize of ImagingCore object at 0x7f>", "one-call", "in resize:"),
        ("  main 0.4ms..5ms PIL/Image.py(5): resize", "one-call", "in resize (Image.py):"),
        ("  main 0.4ms..1ms PIL/Image.py(5): resize", "vectorise", "no loop over pixels"),
    ],
)
def test_augmentation_that_is_one_call_is_told_of_that_call(inside: str, advice: str, said: str):
    """4.6 of 5.7 ms in one call: that is what costs; with 0.6 ms in it the function's own work does."""
    text = """
    with stacks
    steps 4 x 10ms
      main 0ms..10ms train.py(40): train
      main 0ms..8ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
      main 0.1ms..7.9ms torch/utils/data/_utils/fetch.py(49): fetch
      main 0.2ms..7.8ms data.py(23): __getitem__
      main 0.3ms..6ms data.py(31): random_rotate
      main 8ms..9.9ms aten::mm
    """
    finding = found("slow-augmentation", text + "    " + inside)
    assert finding.advice == (advice, "order", "on-batch")
    assert said in finding_texts(finding, "en")["advice"][0]["text"]


def test_the_call_of_a_profiled_function_is_the_library_s():
    """cProfile: 8 of 10 ms of `warp` in one method of the image, 1 ms in another function of the user's."""
    names = ("fetch", "warp", "<method 'rotate' of 'ImagingCore' objects>", "own")
    table = FunctionTable(
        file=("torch/utils/data/_utils/fetch.py", "data.py", "~", "data.py"),
        line=np.array([1, 5, 0, 9]),
        name=names,
        calls=np.ones(4, np.int64),
        self_ns=np.array([0, 1, 8, 1]) * MS,
        total_ns=np.array([10, 10, 8, 1]) * MS,
        edge_caller=np.array([0, 1, 1]),
        edge_callee=np.array([1, 2, 3]),
        edge_total_ns=np.array([10, 8, 1]) * MS,
        edge_calls=np.ones(3, np.int64),
    )
    assert {(row[2], row[5]) for row in parts_of_functions(table)} == {("warp", "rotate"), ("own", "")}


@pytest.mark.parametrize(("elsewhere", "call"), [(2, ONE_LINE), (6, "")])
def test_samples_in_workers_tell_the_line_that_a_function_s_time_lies_in(elsewhere: int, call: str):
    """18 of 20 samples of one line: the line; 18 of 24: no single one."""
    lines = ((7, 18), (9, elsewhere))
    samples = tuple(StackSample("worker", "data.py", line, "augment", count) for line, count in lines)
    (recording,) = sketch(
        "steps 4 x 10ms\n  main 0ms..8ms enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    )
    code = LoaderCode.of(Rank(replace(recording, stacks=samples)))
    assert (code.top("augment").line, code.top("augment").call) == (7, call)
