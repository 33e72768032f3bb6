"""Snapshots: read without unpickling, and recounted another way."""

import gzip
import io
import json
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uncork import readers
from uncork.errors import UnreadableError
from uncork.findings import Bottleneck
from uncork.measure import Rank
from uncork.measure.allocations import allocations, main_device
from uncork.measure.snapshot_memory import SnapshotMemory
from uncork.pipeline import analyze, analyze_recordings
from uncork.readers.pickled import load
from uncork.recording import Recording
from uncork.snapshot import CATEGORIES, MemorySnapshot, MemoryTimeline
from uncork.testing import sketch
from uncork.testing.snapshots import write_snapshot

CASES = ("S01", "S03", "S06", "S07", "S10", "S12")
LINES = [
    "reserved 8GiB",
    "old 1GiB",
    "alloc a 2GiB model.py:12:forward < torch/nn/modules/module.py:1750:_call_impl",
    "alloc b x3 256MiB model.py:14:forward",
    "free a torch::autograd::Engine::thread_main",
    "step AdamW",
    "alloc s 3GiB torch/optim/adam.py:150:_init_group < torch/optim/adam.py:200:step < train.py:30:main",
]
GIB = 1 << 30


class NoCode(pickle.Unpickler):
    """The standard library's reader, for data only."""

    def find_class(self, module: str, name: str):
        """Refuse whatever a pickle asks for."""
        raise AssertionError(f"{module}.{name}")


def memory_of(held: object) -> SnapshotMemory:
    """Return the measurement of a snapshot or timeline."""
    return SnapshotMemory.of(Rank(Recording("x", "snapshot", snapshot=held)))


def snapshot_of(path: Path) -> MemorySnapshot:
    """Return the snapshot in a file."""
    (recording,) = readers.read(path)
    assert isinstance(recording.snapshot, MemorySnapshot)
    return recording.snapshot


@pytest.mark.parametrize("case", CASES)
def test_r2_2_totals_equal_a_recount_of_the_file(shared: Path, case: str):
    """Reserved, allocated, start and peak equal a walk over the file's own dicts, event by event."""
    (path,) = (shared / "corpus" / "cases" / case).glob("*.pickle")
    with path.open("rb") as file:
        document = NoCode(file).load()
    reserved = sum(segment["total_size"] for segment in document["segments"])
    end = sum(
        block.get("requested_size", block["size"])
        for segment in document["segments"]
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    )
    change, changes = 0, [0]
    for action in (action for trace in document["device_traces"] for action in trace):
        change += {"alloc": action["size"], "free_requested": -action["size"]}.get(action["action"], 0)
        changes.append(change)
    memory = memory_of(snapshot_of(path))
    assert memory.reserved_bytes == reserved
    assert memory.allocated_bytes == end
    assert memory.start_bytes == end - changes[-1]
    assert memory.peak_bytes == end - changes[-1] + max(changes)


@pytest.mark.parametrize("case", CASES)
def test_no_category_exceeds_the_whole(shared: Path, case: str):
    """Categories sum to what is in use, at the peak and at the end; nothing is negative."""
    (path,) = (shared / "corpus" / "cases" / case).glob("*.pickle")
    snapshot = snapshot_of(path)
    memory = memory_of(snapshot)
    assert sum(memory.peak_categories.values()) == memory.peak_bytes
    assert sum(memory.end_categories.values()) == memory.allocated_bytes
    assert min(memory.peak_categories.values()) >= 0
    assert all(0 <= one.low_bytes <= one.high_bytes <= memory.peak_bytes for one in memory.savings)
    blocks = allocations(snapshot, main_device(snapshot))
    assert int(blocks.allocated_bytes.min()) >= 0
    assert int(blocks.reserved_bytes.min()) >= 0


def test_r5_2_the_owner_at_the_peak_is_the_line_of_the_optimizer(shared: Path):
    """S01: two fp32 moments of 12.7 GiB each, made in lines 82 and 84 of the user's optimiser."""
    (path,) = (shared / "corpus" / "cases" / "S01").glob("*.pickle")
    memory = memory_of(snapshot_of(path))
    state = [one for one in memory.peak_owners if one.category == "optimizer_state"]
    assert [(one.location.line, round(one.size_bytes / GIB, 1)) for one in state] == [(82, 12.7), (84, 12.7)]
    assert memory.peak_phase == "optimizer"


@pytest.mark.parametrize(
    ("name", "reserved", "history"),
    [
        ("70-snapshot-ok-tiny.pickle", 2_097_152, True),
        ("73-snapshot-big-int.pickle", 0, True),
        ("74-snapshot-list-of-segments.pickle", 2_097_152, False),
        ("76-snapshot-free-before-alloc.pickle", 0, True),
        ("77-snapshot-as-json.pickle", 2_097_152, True),
    ],
)
def test_odd_snapshots_are_accepted(shared: Path, name: str, reserved: int, history: bool):
    """Each ends as its manifest says: read, with no negative total, its missing history known."""
    snapshot = snapshot_of(shared / "corpus" / "malformed" / name)
    memory = memory_of(snapshot)
    assert memory.reserved_bytes == reserved
    assert snapshot.has_history is history
    assert min(memory.peak_bytes, memory.start_bytes, memory.allocated_bytes) >= 0


def test_a_cut_snapshot_is_refused_in_one_line(shared: Path):
    """The message names the file and what happened, without a line break."""
    path = shared / "corpus" / "malformed" / "71-snapshot-cut.pickle"
    with pytest.raises(UnreadableError, match="cut off after 198 bytes") as caught:
        readers.read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_gives_the_same_snapshot(tmp_path: Path, protocol: int):
    """Torch writes protocol 2 or 4; a file saved again with another one reads the same."""
    plain = write_snapshot(LINES, tmp_path / "a.pickle")
    document = pickle.loads(plain.read_bytes())
    again = tmp_path / "b.pickle"
    again.write_bytes(pickle.dumps(document, protocol=protocol))
    first, second = snapshot_of(plain), snapshot_of(again)
    for name in ("action", "address", "size_bytes", "time_ns", "stack"):
        assert np.array_equal(getattr(first.trace, name), getattr(second.trace, name)), name
    assert first.stacks.function == second.stacks.function


def test_gzip_and_json_read_as_the_pickle_does(tmp_path: Path):
    """What is in the file decides, whatever it is packed in."""
    plain = write_snapshot(LINES, tmp_path / "a.pickle")
    packed = tmp_path / "b.bin"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    text = tmp_path / "c.pickle"
    text.write_text(json.dumps(pickle.loads(plain.read_bytes())))
    peaks = [memory_of(snapshot_of(path)).peak_bytes for path in (plain, packed, text)]
    # 1 GiB old, three times 256 MiB kept, 3 GiB of state after the 2 GiB were freed.
    assert peaks == [4 * GIB + 768 * (1 << 20)] * 3


def test_torchs_cpp_writer_is_read(tmp_path: Path):
    """The C++ pickler wraps lists in functions of torch.jit._pickle: they are resolved, not called."""
    plain = pickle.dumps({"device": 0, "total_size": 5}, protocol=2)[2:-1]
    wrapped = (
        b"\x80\x02}(X\x08\x00\x00\x00segments"
         b"ctorch.jit._pickle\nbuild_list\n](" + plain + b"e\x85R"
        + b"X\x0d\x00\x00\x00device_traces]u."
    )  # fmt: skip
    path = tmp_path / "cpp.pickle"
    path.write_bytes(wrapped)
    assert snapshot_of(path).segments.size_bytes.tolist() == [5]


@pytest.mark.parametrize("host_first", [False, True])
def test_pinned_host_memory_is_kept_apart(tmp_path: Path, host_first: bool):
    """Torch 2.14 adds host segments and traces: neither their sizes nor their actions count as the device's."""
    plain = write_snapshot(LINES, tmp_path / "a.pickle")
    document = pickle.loads(plain.read_bytes())
    block = {"size": 77, "requested_size": 77, "state": "active_allocated", "address": 1}
    host = {
        "host_segments": [{"device": 0, "address": 1, "total_size": 77, "blocks": [block]}],
        "host_traces": [[{"action": "alloc", "addr": 1, "size": 77}]],
    }
    path = tmp_path / "b.pickle"
    path.write_bytes(pickle.dumps(host | document if host_first else document | host))
    with_host, without = snapshot_of(path), snapshot_of(plain)
    assert with_host.segments.size_bytes.tolist() == without.segments.size_bytes.tolist()
    assert with_host.blocks.address.tolist() == without.blocks.address.tolist()
    assert with_host.trace.address.tolist() == without.trace.address.tolist()
    assert memory_of(with_host).peak_bytes == memory_of(without).peak_bytes


def test_older_forms_are_read(tmp_path: Path):
    """Before torch 2.1 blocks had no address and kept stack and real size in a history; ``free`` was one word."""
    block = {"size": 512, "state": "active_allocated", "history": [{"addr": 7, "real_size": 100, "frames": []}]}
    free = {"size": 512, "state": "inactive"}
    action = {"action": "alloc", "addr": 1, "size": 10, "stream": 0}
    document = {
        "segments": [{"device": 0, "address": 7, "total_size": 1024, "blocks": [block, free]}],
        "device_traces": [[action, {**action, "action": "free"}]],
    }
    path = tmp_path / "old.pickle"
    path.write_bytes(pickle.dumps(document))
    snapshot = snapshot_of(path)
    assert snapshot.blocks.requested_bytes.tolist() == [100, 512]
    assert snapshot.blocks.address.tolist() == [7, 519]
    memory = memory_of(snapshot)
    assert (memory.start_bytes, memory.peak_bytes, memory.allocated_bytes) == (100, 110, 100)


def test_reading_takes_a_small_multiple_of_the_file(tmp_path: Path):
    """A snapshot of some megabytes with stacks of thirty frames peaks below four times its size."""
    lines = ["reserved 8GiB", "alloc a x8000 1KiB " + " < ".join(f"m{n}.py:{n}:f{n}" for n in range(30))]
    path = write_snapshot(lines, tmp_path / "large.pickle")
    tracemalloc.start()
    snapshot = snapshot_of(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(snapshot.trace) == 8_000
    assert most < 4 * path.stat().st_size + (4 << 20)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["alloc", "free_requested", "free_completed"]), st.integers(1, 4)), max_size=40)
)
def test_replay_equals_a_walk_with_a_dict(actions: list[tuple[str, int]]):
    """Any order of allocations and frees, of unknown blocks too: the same curve as a plain walk, never negative."""
    sizes = {1: 10, 2: 200, 3: 3_000, 4: 40_000}
    document = {
        "segments": [],
        "device_traces": [[{"action": word, "addr": place, "size": sizes[place]} for word, place in actions]],
    }
    blocks = allocations(_read(document), 0)
    state: dict[int, str] = {}
    changes = [0]
    for word, place in actions:
        before, state[place] = state.get(place, "unknown"), "live" if word == "alloc" else "free"
        if word == "alloc":
            changes.append(changes[-1] + (0 if before == "live" else sizes[place]))
        else:
            changes.append(changes[-1] - (0 if before == "free" else sizes[place]))
    in_use = blocks.allocated_bytes
    assert (in_use - in_use[0]).tolist() == changes
    assert int(in_use.min()) >= 0
    assert int(in_use[blocks.peak]) == int(blocks.size_bytes[blocks.live(blocks.peak)].sum())


def _read(document: object) -> MemorySnapshot:
    from uncork.readers.snapshot import _Collected

    collected = _Collected()
    top = load(io.BytesIO(pickle.dumps(document)), collected.take)
    return collected.snapshot(top, Path("x"))


def test_stacks_of_python_alone_say_the_same(shared: Path, tmp_path: Path):
    """With stacks="python" autograd's own blocks have no stack: without the C++ frames S01 has the same parts."""
    (path,) = (shared / "corpus" / "cases" / "S01").glob("*.pickle")
    document = pickle.loads(path.read_bytes())
    for holder in [
        *document["device_traces"][0],
        *(block for segment in document["segments"] for block in segment["blocks"]),
    ]:
        holder["frames"] = [frame for frame in holder.get("frames", []) if frame["filename"].endswith(".py")]
    bare = tmp_path / "python.pickle"
    bare.write_bytes(pickle.dumps(document))
    whole, python = memory_of(snapshot_of(path)), memory_of(snapshot_of(bare))
    assert python.peak_phase == whole.peak_phase == "optimizer"
    for word in ("parameter", "optimizer_state", "gradient"):
        assert python.peak_categories[word] == pytest.approx(whole.peak_categories[word], rel=0.01), word


def test_expandable_segments_grow_and_shrink():
    """Mapping 4 MiB and unmapping 2 while the end holds 10: 8 before, 12 between, 10 after."""
    mib = 1 << 20
    actions = [
        {"action": word, "addr": 1, "size": size}
        for word, size in (("segment_map", 4 * mib), ("segment_unmap", 2 * mib))
    ]
    segment = {"device": 0, "address": 0, "total_size": 10 * mib, "is_expandable": True, "blocks": []}
    blocks = allocations(_read({"segments": [segment], "device_traces": [actions]}), 0)
    assert (blocks.reserved_bytes // mib).tolist() == [8, 12, 10]


def test_categories_of_a_step():
    """One step by hand: what each block is for, and who asked for it."""
    (recording,) = sketch("\n".join(f"snapshot {line}" for line in LINES))
    memory = memory_of(recording.snapshot)
    held = {word: size for word, size in memory.peak_categories.items() if size}
    assert held == {"optimizer_state": 3 * GIB, "activation": 768 << 20, "unknown": GIB}
    assert memory.step_bytes == (GIB + (768 << 20),)
    assert [(one.location.file, one.location.line) for one in memory.peak_owners[:1]] == [("train.py", 30)]


def test_what_if_counts_the_peak_anew():
    """Without activations the peak of this step stays, since it lies in the optimiser; its state in 8 bits moves it."""
    (recording,) = sketch("\n".join(f"snapshot {line}" for line in LINES))
    saved = {one.change: one for one in memory_of(recording.snapshot).savings}
    # Peak 4.75 GiB after the step; before it, 3.75 GiB: no saving of state can give back more than the difference.
    assert saved["optimizer_8bit"].high_bytes == GIB
    # Checkpointing keeps 20 to 50 % of the 768 MiB that are in use at the peak.
    assert (saved["checkpointing"].low_bytes, saved["checkpointing"].high_bytes) == (384 << 20, 644_245_095)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["reserved 2GiB", "old 1.9GiB", "alloc a 10MiB", "free a x"], Bottleneck.UNDETERMINED),
        (["reserved 8GiB", "old 2GiB", "alloc a 10MiB", "free a x"], Bottleneck.MEMORY),
        (["reserved 8GiB", "old 2GiB", "alloc a 5GiB", "free a x"], Bottleneck.MEMORY),
        (["reserved 2MiB", "oom 1GiB"], Bottleneck.MEMORY),
        (["reserved 4GiB", "alloc w 3.8GiB model.py:9:__init__", "alloc a 10MiB", "free a x"], Bottleneck.UNDETERMINED),
        (["reserved 2GiB", "old 1.9GiB", "without history"], Bottleneck.UNDETERMINED),
    ],
)
def test_what_a_snapshot_alone_may_conclude(lines: list[str], expected: Bottleneck):
    """Out of memory, a high peak, idle reserve speak of memory; a quiet one, or one without history, of nothing."""
    (recording,) = sketch("\n".join(f"snapshot {line}" for line in lines))
    assert analyze_recordings([recording]).verdict.bottleneck is expected


def test_both_forms_of_a_memory_timeline_say_the_same(tmp_path: Path):
    """Sizes by category, and the events they come from: the same peak, parts and end."""
    sizes = tmp_path / "timeline.json"
    sizes.write_text(json.dumps([[1, 2, 3], [[0, 5, 0, 0, 0, 0, 0, 0, 0], [0, 5, 0, 0, 0, 70, 0, 0, 0],
                                             [0, 5, 9, 0, 0, 0, 0, 0, 0]]]))  # fmt: skip
    events = tmp_path / "timeline.raw.json"
    events.write_text(json.dumps([[-1, 1, 5, 0], [2000, 2, 70, 4], [3000, 4, -70, 4], [3000, 2, 9, 1]]))
    for path in (sizes, events):
        (recording,) = readers.read(path)
        assert isinstance(recording.snapshot, MemoryTimeline)
        memory = memory_of(recording.snapshot)
        assert (memory.peak_bytes, memory.allocated_bytes) == (75, 14)
        assert {word: size for word, size in memory.peak_categories.items() if size} == {
            "parameter": 5,
            "activation": 70,
        }


def test_a_real_timeline_and_its_raw_form_agree(shared: Path):
    """Both were exported from one run of torch 2.13: the peaks are equal to the byte."""
    folder = shared / "corpus" / "recordings" / "cpu-2.13"
    found = [
        memory_of(readers.read(folder / f"convnet.memory_timeline.{form}.gz")[0].snapshot)
        for form in ("json", "raw.json")
    ]
    assert found[0].peak_bytes == found[1].peak_bytes == 1_602_064
    assert found[0].peak_categories == found[1].peak_categories
    assert found[0].peak_categories[CATEGORIES[0]] == 177_480


@pytest.mark.parametrize("text", ["[[1, 2]]", "[[1, 2], [[3]]]", "[[1, 2, 3, 99]]", "[[-1, 1, 5"])
def test_other_lists_of_numbers_are_refused(tmp_path: Path, text: str):
    """What begins like a timeline but holds something else is refused in one line."""
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UnreadableError, match="memory timeline"):
        readers.read(path)


def test_the_section_is_bounded(shared: Path):
    """However many actions: a thousand points, a bounded map, ten owners; the peak is among the points."""
    (path,) = (shared / "corpus" / "cases" / "S03").glob("*.pickle")
    memory = memory_of(snapshot_of(path))
    content = memory.content()
    assert len(content["curve"]["allocated_bytes"]) <= 1_000
    assert max(content["curve"]["allocated_bytes"]) == memory.peak_bytes
    assert sum(len(segment["state"]) for segment in content["segments"]["shown"]) <= 2_000
    assert len(content["largest"]) <= 10
    by_category = content["curve"]["categories"].values()
    assert [sum(column) for column in zip(*by_category, strict=True)] == content["curve"]["allocated_bytes"]


def test_parameters_older_than_the_history_are_known_by_their_moments():
    """Two old blocks of the sizes of the moments are the parameters; a third of another size stays unknown."""
    lines = ["reserved 8GiB", "old 1GiB", "old 2GiB", "old 512MiB"]
    step = "torch/optim/adam.py:200:step < train.py:30:main"
    moments = (("a", "1GiB", 150), ("b", "2GiB", 150), ("c", "1GiB", 155), ("d", "2GiB", 155))
    for name, size, line in moments:
        lines.append(f"alloc {name} {size} torch/optim/adam.py:{line}:_init_group < {step}")
    (recording,) = sketch("\n".join(f"snapshot {line}" for line in lines))
    held = {word: size for word, size in memory_of(recording.snapshot).peak_categories.items() if size}
    assert held == {"parameter": 3 * GIB, "optimizer_state": 6 * GIB, "unknown": 512 << 20}


def test_a_large_snapshot_shows_how_far_reading_has_come(shared: Path):
    """A single file is counted in megabytes as it is read, and as one file at the end."""
    (path,) = (shared / "corpus" / "cases" / "S03").glob("*.pickle")
    seen: list[tuple[int, int, str]] = []
    analyze([path], progress=lambda done, size, name: seen.append((done, size, name)))
    assert seen[0] == (0, 3, f"{path.name}, MB")
    assert [done for done, _, _ in seen[:-1]] == sorted(done for done, _, _ in seen[:-1])
    assert seen[-1] == (1, 1, path.name)
