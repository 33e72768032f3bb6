"""The allocator's history under `uncork run`: held against a torch that only pretends to have a device."""

import inspect
import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.runs import record
from tests.unit.test_memory_choices import FAILED
from uncork import readers
from uncork.capture.memory_history import MOST_ENTRIES, MOST_SNAPSHOTS, MemoryHistory
from uncork.pipeline import analyze
from uncork.recording import RunFolder
from uncork.snapshot import MemorySnapshot
from uncork.testing.snapshots import write_snapshot

SNAPSHOT = {
    "segments": [{"device": 0, "address": 0, "total_size": 512, "blocks": []}],
    "device_traces": [[{"action": "oom", "size": 1024, "device_free": 7, "frames": []}]],
}


class Pretender:
    """Torch as far as the history needs it.

    Args:
        initialized: Whether the program uses CUDA already.
    """

    def __init__(self, *, initialized: bool = True) -> None:
        self.observers: list = []
        self.asked: list[dict[str, object]] = []
        memory = SimpleNamespace(
            _record_memory_history=lambda **asked: self.asked.append(asked), _snapshot=lambda: SNAPSHOT
        )
        self.cuda = SimpleNamespace(is_initialized=lambda: initialized, memory=memory)
        self._C = SimpleNamespace(_cuda_attach_out_of_memory_observer=self.observers.append)


def history() -> MemoryHistory:
    """Return a history whose faults would end the test."""
    return MemoryHistory(lambda what: what())


def test_nothing_happens_before_the_program_uses_cuda(tmp_path: Path):
    """Switching the history on would make a CUDA context, which a program that forks must not have."""
    torch = Pretender(initialized=False)
    history().begin(torch, lambda: tmp_path)
    assert torch.asked == torch.observers == []


def test_a_failure_writes_a_snapshot_that_uncork_reads(tmp_path: Path):
    """The observer writes the file at once; it holds what was asked for."""
    torch, kept = Pretender(), history()
    for _ in range(3):
        kept.begin(torch, lambda: tmp_path)
    assert len(torch.asked) == len(torch.observers) == 1
    assert torch.asked[0]["stacks"] == "python"
    torch.observers[0](0, 1024, 512, 7)
    (recording,) = readers.read(tmp_path / RunFolder.SNAPSHOT)
    assert isinstance(recording.snapshot, MemorySnapshot)
    assert recording.snapshot.trace.size_bytes.tolist() == [1024]
    assert [path.name for path in tmp_path.iterdir()] == [RunFolder.SNAPSHOT]


def test_a_program_that_keeps_failing_is_not_held_up(tmp_path: Path):
    """Only the first few failures write."""
    torch, kept = Pretender(), history()
    kept.begin(torch, lambda: tmp_path)
    for _ in range(10):
        torch.observers[0](0, 1, 1, 1)
    assert kept.written == MOST_SNAPSHOTS


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path):
    """A fault while writing is ours to hold; no part of a file stays."""
    torch = Pretender()
    torch.cuda.memory._snapshot = lambda: (_ for _ in ()).throw(OSError("no space"))
    faults: list[BaseException] = []

    def guard(what):
        try:
            what()
        except OSError as fault:
            faults.append(fault)

    MemoryHistory(guard).begin(torch, lambda: tmp_path)
    torch.observers[0](0, 1, 1, 1)
    assert len(faults) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_torch_without_the_observer_is_left_alone(tmp_path: Path):
    """Builds for other devices have no such observer: no history then."""
    torch = Pretender()
    torch._C = SimpleNamespace()
    history().begin(torch, lambda: tmp_path)
    assert torch.asked == []


def test_a_history_that_the_program_keeps_is_left_as_it_is(tmp_path: Path):
    """Its own number of entries and kinds of stacks stay; a failure is still written."""
    torch = Pretender()
    torch._C._cuda_isHistoryEnabled = lambda: True
    history().begin(torch, lambda: tmp_path)
    assert torch.asked == []
    torch.observers[0](0, 1024, 512, 7)
    assert (tmp_path / RunFolder.SNAPSHOT).is_file()


def test_torchs_own_functions_take_what_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The installed torch's Python code is run; only what lies below it, in C, is pretended."""
    import torch

    below: list[tuple[object, ...]] = []
    observers: list = []
    in_c = SimpleNamespace(
        _cuda_record_memory_history=lambda *asked: below.append(asked), _cuda_memorySnapshot=lambda *_: SNAPSHOT
    )
    monkeypatch.setattr(torch.cuda.memory, "_C", in_c)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: False, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_attach_out_of_memory_observer", observers.append, raising=False)
    history().begin(torch, lambda: tmp_path)
    # enabled, context, stacks, max_entries come first in every version; what follows has defaults.
    assert below[0][:4] == ("all", "all", "python", MOST_ENTRIES)
    observers[0](0, 1024, 512, 7)
    (recording,) = readers.read(tmp_path / RunFolder.SNAPSHOT)
    assert recording.snapshot.trace.size_bytes.tolist() == [1024]


SIGNATURES = {
    "2.3": "enabled context stacks max_entries device",
    "2.8": "enabled context stacks max_entries device clear_history compile_context global_record_annotations",
    "2.15": "enabled context stacks max_entries device clear_history compile_context global_record_annotations "
    "skip_actions record_pinned_host_memory record_cuda",
}
"""Parameters of ``_record_memory_history`` as torch's sources of these versions list them, all with defaults."""


@pytest.mark.parametrize("version", SIGNATURES)
def test_each_version_takes_what_is_asked(version: str):
    """What the recorder asks for has a parameter in the oldest and the newest version."""
    torch = Pretender()
    history().begin(torch, Path)
    assert set(torch.asked[0]) <= set(SIGNATURES[version].split())


def test_the_installed_version_has_the_parameters_of_the_oldest():
    """A version that drops or renames one of them is noticed here."""
    import torch

    known = set(inspect.signature(torch.cuda.memory._record_memory_history).parameters)
    assert set(SIGNATURES["2.3"].split()) <= known
    inspect.signature(torch.cuda.memory._snapshot).bind()
    rules = Path(torch.__file__).with_name("_dynamo") / "trace_rules.py"
    for name in ("_cuda_attach_out_of_memory_observer", "_cuda_isHistoryEnabled"):
        assert f'"torch._C.{name}"' in rules.read_text("utf-8"), name


def test_a_run_folder_with_a_snapshot_shows_it(tmp_path: Path):
    """A run that ended out of memory may have no window: the snapshot alone is worth a report."""
    home = tmp_path / "rank0"
    home.mkdir()
    (tmp_path / RunFolder.RECORDING).write_text("{}")
    (home / RunFolder.SNAPSHOT).write_bytes(pickle.dumps(SNAPSHOT))
    (recording,) = readers.read(tmp_path)
    assert isinstance(recording.snapshot, MemorySnapshot)


PROGRAM = """
import pickle, sys, torch
from types import SimpleNamespace
observers = []
torch.cuda.memory._C = SimpleNamespace(
    _cuda_record_memory_history=lambda *asked: None,
    _cuda_memorySnapshot=lambda *_: pickle.load(open(sys.argv[1], "rb")),
)
torch._C._cuda_attach_out_of_memory_observer = observers.append
torch._C._cuda_isHistoryEnabled = lambda: False  # a build for CUDA without a driver would raise
torch.cuda.is_initialized = lambda: True
torch.cuda.is_current_stream_capturing = lambda: False
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.AdamW(layer.parameters())
for step in range(60):
    layer(torch.randn(32, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
observers[0](0, 2 << 30, 3 << 30, 1 << 27)
raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 512.00 MiB.")
"""


def test_a_run_that_ends_out_of_memory_is_told_so(tmp_path: Path):
    """The whole way but for the device: history, failure, snapshot, the program's own exit code, the verdict."""
    held = write_snapshot(FAILED, tmp_path / "held.pickle")
    (tmp_path / "train.py").write_text(PROGRAM)
    run = record(tmp_path / "run", ["train.py", str(held)], cwd=tmp_path)
    assert run.code == 1
    assert "Tried to allocate 512.00 MiB" in run.err
    assert (run.folder / "rank0" / RunFolder.SNAPSHOT).read_bytes()[:2] == b"\x80\x04"
    report = analyze([run.folder])
    assert (report.verdict.bottleneck.value, report.findings[0].rule) == ("memory", "oom-forensics")
    assert report.findings[0].params["requested_bytes"] == 512 << 20


TRAINS = """import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(20):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
"""
TOO_MUCH = "torch.empty(10**14)\n"


@pytest.mark.torch
@pytest.mark.parametrize(
    ("end", "failed"),
    [
        (TOO_MUCH, True),
        ("raise MemoryError\n", True),
        (f"try:\n    {TOO_MUCH}except RuntimeError:\n    pass\n", False),
        ("raise RuntimeError('boom')\n", False),
    ],
)
def test_a_program_that_ends_for_want_of_host_memory_says_so(tmp_path: Path, end: str, *, failed: bool) -> None:
    """400 TB that nobody has end it, and the report says so; not of what it caught itself, nor of another error."""
    (tmp_path / "program.py").write_text(TRAINS + end)
    run = record(tmp_path / "run", [str(tmp_path / "program.py")], cwd=tmp_path)
    assert (run.code == 0) is ("except" in end)
    assert ("host-memory-failed" in run.told(0)["notes"]) is failed
    assert ("host-memory-failed" in [one.id for one in analyze([run.folder]).quality]) is failed
