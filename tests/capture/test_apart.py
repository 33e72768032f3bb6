"""What a program can see of the recorder: nothing, however closely it looks at torch."""

import functools
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.capture.runs import command, environment, plain, record
from uncork.capture.budget import Budget, Room
from uncork.capture.hooks import Outermost
from uncork.capture.probes import TraceProbe
from uncork.capture.recorder import Here, Recorder
from uncork.capture.settings import parameter_count

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
PROGRAMS = str(HERE / "programs.py")


LOOKING = ["counts_calls", "calls_itself", "without_values", "compiled_update", "compiled_step", "by_value"]


@pytest.mark.parametrize("program", LOOKING)
def test_a_program_that_looks_closely_sees_the_same(tmp_path: Path, program: str) -> None:
    """Its output and exit code are as without the recorder, which meets no fault."""
    alone = plain([PROGRAMS, program], cwd=HERE)
    run = record(tmp_path / "run", [PROGRAMS, program], cwd=HERE)
    assert (run.out, run.code) == (alone.stdout, 0)
    assert not (tmp_path / "run" / "recorder-fault").exists()
    if program != "by_value":
        assert {"light", "deep"} <= set(run.window_names())
        assert run.told(0)["faults"] == []


PROCESSES = """
import sys, warnings, torch
from torch import nn

def seen(event, _):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system"):
        print(event)

class Warns(nn.Linear):
    def forward(self, value):
        warnings.warn("said once", stacklevel=3)
        return super().forward(value)

model = Warns(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
sys.addaudithook(seen)
for _ in range(60):
    optimizer.zero_grad()
    model(torch.ones(1, 8)).sum().backward()
    optimizer.step()
"""


def test_no_process_is_started_in_the_programs_name(tmp_path: Path) -> None:
    """Its handler of SIGCHLD would hear of it, and its filters of warnings forget what was said (`get_exec_path`)."""
    (tmp_path / "main.py").write_text(PROCESSES, encoding="utf-8")
    alone = plain([str(tmp_path / "main.py")], cwd=HERE)
    run = record(tmp_path / "run", [str(tmp_path / "main.py")], cwd=HERE)
    assert alone.stderr.count("said once") == 1
    assert (run.out, run.err, run.code) == ("", alone.stderr, 0)
    assert run.told(0)["host"]["platform"] == f"{platform.system()}-{platform.release()}-{platform.machine()}"


WARNED = """
import warnings
from torch.utils.data import DataLoader, TensorDataset
import torch

warnings.simplefilter("always")
for workers in (0, 1):
    for batch in DataLoader(TensorDataset(torch.ones(8, 4)), 4, pin_memory=True, num_workers=workers):
        pass
"""


@pytest.mark.skipif(torch.accelerator.is_available() if hasattr(torch, "accelerator") else True, reason="pins memory")
def test_a_warning_names_the_line_that_it_names_without_the_recorder(tmp_path: Path) -> None:
    """Filters of warnings go by it: that memory is not pinned, torch says of whoever begins to iterate."""
    (tmp_path / "main.py").write_text(WARNED, encoding="utf-8")
    alone = plain([str(tmp_path / "main.py")], cwd=HERE)
    assert "no accelerator is found" in alone.stderr
    assert record(tmp_path / "run", [str(tmp_path / "main.py")], cwd=HERE).err == alone.stderr


FORWARDS = """
import sys, torch
model = torch.nn.Linear(8, 8)
with torch.no_grad():
    for _ in range(300):
        found = model(torch.ones(1, 8))
print(found.shape, "resource" in sys.modules)
"""


def test_files_beside_the_script_are_not_run_for_us(tmp_path: Path) -> None:
    """Two are named as modules of Python's library that only the recorder wants: nothing of them is ever run."""
    for name in ("resource.py", "profile.py"):
        (tmp_path / name).write_text(f"print('run: {name}')\n", encoding="utf-8")
    (tmp_path / "main.py").write_text(FORWARDS, encoding="utf-8")
    argv = [str(tmp_path / "main.py")]
    alone, run = plain(argv, cwd=HERE), record(tmp_path / "run", argv, cwd=HERE)
    assert (run.out, run.code) == (alone.stdout, 0)
    assert run.told(0)["faults"] == []
    assert "profile-hidden" in run.told(0)["notes"]
    assert {"light", "deep"} <= set(run.window_names())


SPAWNING = """
import os, torch, uncork

class Ones(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.ones(2)

if __name__ == "__main__":
    for name in ("PYTHONPATH", "UNCORK_CAPTURE"):
        os.environ.pop(name, None)
    loader = torch.utils.data.DataLoader(Ones(), 2, num_workers=1, multiprocessing_context="spawn")
    print(uncork.MINE, len(list(loader)))
"""


def test_workers_start_where_the_program_cleared_its_environment(tmp_path: Path) -> None:
    """A worker that cannot find the recorder is asked for nothing of it: the program has an ``uncork`` of its own."""
    (tmp_path / "uncork.py").write_text("MINE = 'mine'\n", encoding="utf-8")
    (tmp_path / "main.py").write_text(SPAWNING, encoding="utf-8")
    folder = tmp_path / "run"
    run = record(folder, [str(tmp_path / "main.py")], cwd=HERE)
    assert (run.out, run.code) == ("mine 4\n", 0), run.err


def test_a_script_whose_name_is_no_text_is_recorded(tmp_path: Path) -> None:
    """Its deep window goes without stacks, which torch cannot write, and nothing fails."""
    script = tmp_path / os.fsdecode(b"t\xff.py")
    try:
        script.write_text(FORWARDS, encoding="utf-8")
    except OSError:
        pytest.skip("files here have names in UTF-8 only")
    run = record(tmp_path / "run", [str(script)], cwd=HERE)
    assert run.code == 0
    assert run.told(0)["faults"] == []
    assert "deep" in run.window_names()


def test_room_for_nested_modules_is_made_once_for_each_limit() -> None:
    """A program that sets a limit of its own inside its modules, and restores the one it found, doubles none again."""
    patches = SimpleNamespace(
        recorder=SimpleNamespace(guard=lambda _: None, regions=SimpleNamespace(on=False)),
        torch=SimpleNamespace(_C=SimpleNamespace(_profiler=SimpleNamespace(_RecordFunctionFast=None))),
    )
    seen, found = [], sys.getrecursionlimit()

    def call(below: int) -> None:
        before = sys.getrecursionlimit()
        if below == 40:
            sys.setrecursionlimit(found + 500)
        if below:
            outermost.call(below - 1, (), {})
        else:
            seen.append(before)
        if below == 40:
            sys.setrecursionlimit(before)

    outermost = Outermost(patches, call)
    try:
        for depth in (35, 40, 35, 40, 35):
            outermost.call(depth, (), {})
        seen.append(sys.getrecursionlimit())
    finally:
        sys.setrecursionlimit(found)
    assert seen == [2 * found, 2 * (found + 500), 2 * found, 2 * (found + 500), 2 * found, 2 * found]


def test_the_highest_limit_of_nested_calls_stays() -> None:
    """A program that allows all that Python takes is given no more: twice as much would be an error of ours."""
    recorder = SimpleNamespace(guard=lambda _: None, regions=SimpleNamespace(on=False))
    profiler = SimpleNamespace(_RecordFunctionFast=None)
    torch_like = SimpleNamespace(_C=SimpleNamespace(_profiler=profiler))
    found = sys.getrecursionlimit()

    def call(below: int) -> int:
        return outermost.call(below - 1, (), {}) if below else sys.getrecursionlimit()

    outermost = Outermost(SimpleNamespace(torch=torch_like, recorder=recorder), call)
    try:
        sys.setrecursionlimit(2**31 - 1)
        assert outermost.call(40, (), {}) == 2**31 - 1
    finally:
        sys.setrecursionlimit(found)


@pytest.mark.parametrize(("captures", "waits"), [(False, 1), (True, 0)])
def test_a_trace_that_ends_while_a_graph_is_captured_waits_for_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, captures: bool, waits: int
) -> None:
    """A wait for the device in there would spoil the program's graph; a window that is full is cut afterwards."""
    waited = []
    probe = TraceProbe(torch, lambda _: None)
    probe.start()
    watched = Budget(torch, Room(1, 1))
    for name in ("is_initialized", "is_available"):
        monkeypatch.setattr(torch.cuda, name, lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: captures)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(1))
    assert watched.has_to_wait() is captures
    assert probe.stop(tmp_path / "trace.json")["trace_bytes"] > 0
    assert len(waited) == waits


class Late(Exception):  # noqa: N818  # as programs call what their alarm raises
    """What a handler of the program's raises."""


class Handler:
    """Three kinds of handlers: a method, a partial, and an object to be called."""

    def method(self, *_: object) -> None:
        """Raise."""
        raise Late

    def __call__(self, *_: object) -> None:
        """Raise."""
        raise Late


@pytest.mark.parametrize("kind", ["method", "partial", "object"])
def test_what_a_handler_raises_reaches_the_program(kind: str) -> None:
    """An alarm that falls into the recorder ends the recording, and the program gets the error; ours it never gets."""
    handler, faults = Handler(), []
    mine = SimpleNamespace(broken=False, here=Here(), torch=None, break_down=lambda: faults.append(sys.exc_info()[0]))
    guard = functools.partial(Recorder.guard, mine)
    before = signal.signal(
        signal.SIGALRM,
        {"method": handler.method, "partial": functools.partial(Handler.method, handler), "object": handler}[kind],
    )
    try:
        with pytest.raises(Late):
            guard(lambda: signal.raise_signal(signal.SIGALRM))
        guard([].pop)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert faults == [Late, IndexError]


def test_open_files_are_handed_on(tmp_path: Path) -> None:
    """A file that the shell opened for the program (``<(command)``) is open there under its number."""
    (tmp_path / "read.py").write_text("import os, sys\nprint(os.read(int(sys.argv[1]), 9))\n", encoding="utf-8")
    reads, writes = os.pipe()
    os.write(writes, b"from here")
    argv = command(tmp_path / "run", [str(tmp_path / "read.py"), str(reads)])
    done = subprocess.run(argv, env=environment(), pass_fds=[reads], capture_output=True, text=True, check=False)
    os.close(reads)
    os.close(writes)
    assert done.stdout == "b'from here'\n", done.stderr


class Groups(torch.nn.Sequential):
    """A model that returns groups for its optimiser where torch's own returns parameters."""

    def parameters(self, recurse: bool = True) -> list:
        """Return one group with a rate of its own."""
        return [{"params": list(super().parameters(recurse)), "lr": 0.1}]

    def named_parameters(self, *_: object, **__: object) -> list:
        """Return what nobody can call by name."""
        raise NotImplementedError


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")  # so say older versions of torch
def test_parameters_are_counted_by_torchs_own_books() -> None:
    """Twice the same layer counts once (9 + 3), a lazy one not at all, and what the program defines is not asked."""
    layer = torch.nn.Linear(3, 3)
    assert parameter_count(Groups(layer, layer, torch.nn.LazyLinear(3), torch.nn.Linear(3, 2, bias=False))) == 12 + 6
