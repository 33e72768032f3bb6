"""However a program ends, it ends as it would have without us, and what was recorded is there."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.capture.runs import Run, command, environment, plain, record
from uncork import readers
from uncork.capture.inside import OUR_FILES, STANDARD, theirs_of, without_our_frames
from uncork.capture.options import CaptureOptions, Orders
from uncork.capture.recorder import Recorder
from uncork.capture.steps import Action

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
PROGRAM = str(HERE / "training.py")
WAYS = {
    "return": 0,
    "exception": 1,
    "exit-3": 3,
    "exit-text": 1,
    "interrupt": -2,
    "os-exit": 7,
    "SIGTERM": -15,
    "SIGKILL": -9,
    "SIGSEGV": -11,
    "exec": 5,
    "thread": 0,
    "fork": 0,
    "fork-exit": 3,
    "mp-fork": 0,
    "mp-spawn": 0,
}
"""Way to end → return code, as the operating system shows it to a parent (negative: the signal)."""


@pytest.fixture(scope="module", params=list(WAYS))
def ending(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Run]:
    """Run the program once per way to end."""
    folder = tmp_path_factory.mktemp("exit") / "run"
    return request.param, record(folder, [PROGRAM, request.param], cwd=HERE)


def test_exit_code_is_the_programs_own(ending: tuple[str, Run]) -> None:
    """The return code under the recorder is the one the program has without it."""
    way, run = ending
    assert run.code == WAYS[way], run.err


def test_recording_is_there(ending: tuple[str, Run]) -> None:
    """Light window, deep window and cProfile of twenty steps are on disk, whatever the end."""
    way, run = ending
    told = run.told(0)
    assert {"baseline", "light", "functions", "deep"} <= set(run.window_names()), (way, told, run.err)
    assert told["faults"] == []
    assert told["step_rule"] == "loader"
    (recording,) = readers.read(run.folder)
    assert recording.events is not None
    assert len(recording.events) > 100
    assert recording.deep is not None
    assert recording.run is not None
    assert recording.run.exit_code == (WAYS[way] if WAYS[way] >= 0 else 128 - WAYS[way])


def test_nothing_of_ours_is_said(ending: tuple[str, Run]) -> None:
    """Standard error holds the program's own words only: no line of the profiler, no frame of ours."""
    way, run = ending
    assert "uncork" not in run.err.replace(str(HERE), ""), run.err
    assert "profiler" not in run.err.lower()
    if way in ("return", "exit-3", "os-exit", "exec", "thread", "SIGTERM", "SIGKILL", "SIGSEGV"):
        assert run.err == ""


@pytest.mark.parametrize("way", ["forward-error", "thread-error", "worker-error"])
def test_tracebacks_show_no_frame_of_ours(tmp_path: Path, way: str) -> None:
    """An error in a forward, on the main thread or another, or in a worker prints the traceback of a plain run."""
    watched = record(tmp_path / "run", [PROGRAM, way], cwd=HERE)
    alone = plain([PROGRAM, way], cwd=HERE)
    assert "Traceback" in alone.stderr
    assert (watched.err, watched.code) == (alone.stderr, alone.returncode)


PRINTS = """
import logging, sys, traceback, torch

class Bad(torch.nn.Module):
    def forward(self, given):
        print("".join(traceback.format_stack()), flush=True)
        raise ValueError(given)

class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, row):
        raise KeyError(row)

def update():
    print("".join(traceback.format_stack()), flush=True)
    return torch.ones(1)

logging.basicConfig(stream=sys.stdout)
try:
    Bad()(3)
except ValueError:
    logging.exception("forward")
    traceback.print_exc()
for workers in (0, 1):
    try:
        next(iter(torch.utils.data.DataLoader(Rows(), 2, num_workers=workers)))
    except KeyError as error:
        print(traceback.format_exc(), traceback.extract_tb(error.__traceback__))
torch.optim.SGD([torch.ones(1, requires_grad=True)]).step(update)
"""


def test_what_the_program_prints_of_stacks_shows_no_frame_of_ours(tmp_path: Path) -> None:
    """Tracebacks and stacks that it prints or logs itself are those of a plain run."""
    (tmp_path / "prints.py").write_text(PRINTS, encoding="utf-8")
    watched = record(tmp_path / "run", ["prints.py"], cwd=tmp_path)
    alone = plain(["prints.py"], cwd=tmp_path)
    assert alone.stdout.count("Traceback") >= 3
    assert watched.out == alone.stdout
    assert alone.stderr in watched.err


@pytest.mark.parametrize(
    ("stack", "shown"),
    [
        ("main ours torch", "main torch"),
        ("ours torch ours forward", "torch forward"),
        ("main ours guard ours torch pathlib handler", "main handler"),
        ("guard ours torch", "guard ours torch"),
        ("torch ours", "torch ours"),
    ],
)
def test_frames_of_ours_are_shown_in_faults_of_ours_alone(stack: str, shown: str) -> None:
    """Above frames of others they are left out, below the guard with those of Python and torch; ours alone is whole."""
    frames = []
    lie_in = {"ours": OUR_FILES, "guard": OUR_FILES, "torch": "/lib/site-packages/torch/", "pathlib": STANDARD[0]}
    for name in stack.split():
        file = f"{lie_in.get(name, '')}{name}.py"
        frames.append((SimpleNamespace(f_code=SimpleNamespace(co_filename=file, co_name=name)), 1))
    assert " ".join(frame.f_code.co_name for frame, _ in theirs_of(frames)) == shown


def test_a_ctrl_c_that_falls_into_us_points_at_the_programs_line(tmp_path: Path) -> None:
    """What ran below our guard was ours, files of Python's own library included: the traceback ends where we began."""
    recorder = Recorder(Orders(str(tmp_path), "", CaptureOptions()))

    close = functools.partial(signal.raise_signal, signal.SIGINT)
    interrupted = contextlib.closing(SimpleNamespace(close=close)).__exit__  # Python's own, in a file of the library

    def program() -> None:
        recorder.guard(interrupted)

    with pytest.raises(KeyboardInterrupt) as caught:
        program()
    shown = traceback.extract_tb(without_our_frames(caught.value, caught.value.__traceback__))
    assert shown[-1].name == "program"


def test_each_thread_is_busy_for_itself(tmp_path: Path) -> None:
    """Work of ours on one thread is no reason to leave another's window open, nor to take its profiler for ours."""
    recorder = Recorder(Orders(str(tmp_path), "", CaptureOptions()))
    seen: list[bool] = []
    other = threading.Thread(target=lambda: seen.append(recorder.busy))

    def work() -> None:
        other.start()
        other.join()
        seen.append(recorder.busy)

    recorder.guard(work)
    assert [*seen, recorder.busy] == [False, True, False]


def test_a_loop_that_begins_after_all_was_recorded_has_its_loader_watched(tmp_path: Path) -> None:
    """An evaluation was recorded whole, then training begins: what its loader does is written, by its workers too."""
    recorder = Recorder(Orders(str(tmp_path), "", CaptureOptions()))
    recorder.torch = torch
    done = recorder.home() / "complete"
    recorder._complete()
    assert (recorder.spans.on, done.exists()) == (False, True)
    recorder.take(Action.RESTART)
    recorder.finish()
    assert (recorder.spans.on, done.exists()) == (True, False)


def test_a_child_that_trains_first_takes_no_ones_place(tmp_path: Path) -> None:
    """A forked child makes its steps before the program does: the report is of the program, the child stands beside."""
    (tmp_path / "train.py").write_text(
        "import os, torch\nfrom torch import nn\n\n\ndef train(steps):\n    net = nn.Linear(4, 4)\n"
        "    optimizer = torch.optim.SGD(net.parameters())\n    for _ in range(steps):\n"
        "        net(torch.ones(2, 4)).sum().backward()\n        optimizer.step()\n\n\n"
        "if os.fork() == 0:\n    train(30)\n    os._exit(0)\nos.wait()\ntrain(40)\nprint(os.getpid())\n"
    )
    run = record(tmp_path / "run", ["train.py"], cwd=tmp_path)
    assert run.code == 0, run.err
    assert run.told(0)["pid"] == int(run.out)
    assert run.told(0)["steps_seen"] == 40
    (child,) = run.folder.glob("extra*")
    assert json.loads((child / "recording.json").read_text())["steps_seen"] == 30


def test_ignored_signals_stay_ignored(tmp_path: Path) -> None:
    """Under nohup a hang-up ends neither the recorder nor the program, which inherits that it is ignored."""
    (tmp_path / "show.py").write_text("import signal\nprint(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)\n")
    argv = ["nohup", *command(tmp_path / "run", ["show.py"])]
    done = subprocess.run(argv, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_output_equals_a_plain_run_to_the_bit(tmp_path: Path) -> None:
    """Losses, the state of the random numbers, the traceback and the order of output are those of a plain run."""
    watched = record(tmp_path / "run", [PROGRAM, "exception"], cwd=HERE)
    alone = plain([PROGRAM, "exception"], cwd=HERE)
    assert watched.out == alone.stdout
    assert watched.err == alone.stderr
    assert watched.code == alone.returncode == 1
    assert alone.stdout.count("\n") == 21


def test_no_source_of_random_numbers_is_touched(tmp_path: Path) -> None:
    """Dropout, shuffling, noise in workers, Python's, numpy's and torch's states and the weights: equal to the bit."""
    watched = record(tmp_path / "run", ["seeded.py"], cwd=HERE)
    alone = plain(["seeded.py"], cwd=HERE)
    assert (watched.out, watched.err, watched.code) == (alone.stdout, alone.stderr, 0)
    assert alone.stdout.count("\n") == 28 + 5 + 4
    assert {"light", "functions", "deep"} <= set(watched.window_names())


def test_a_reader_that_leaves_early_changes_no_exit_code(tmp_path: Path) -> None:
    """Whoever reads the report closes the pipe, as `| head -1` does: the program's code stands, and nothing is said."""
    quiet = "import io, runpy, sys; sys.stdout = io.StringIO(); runpy.run_path(sys.argv.pop(1), run_name='__main__')\n"
    (tmp_path / "quiet.py").write_text(quiet)
    end, ours = os.pipe()
    os.close(end)
    program = [str(tmp_path / "quiet.py"), PROGRAM, "exit-3"]
    words = [sys.executable, "-m", "uncork", "run", "-o", str(tmp_path / "run"), *program]
    done = subprocess.run(words, cwd=HERE, env=environment(), stdout=ours, stderr=subprocess.PIPE, check=False)
    os.close(ours)
    said = [line for line in done.stderr.splitlines() if b"uncork" in line and b"the compiled reader" not in line]
    assert (done.returncode, said) == (3, [])
    assert (tmp_path / "run" / "report.json").is_file()
