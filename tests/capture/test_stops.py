"""When the windows step aside, wait, or end the program: whatever the machine is busy with."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.capture.runs import command, environment, plain, record
from uncork import readers
from uncork.capture import trigger

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
PROGRAMS = str(HERE / "programs.py")
PROFILED = str(HERE / "profiled.py")


def test_own_profiler_is_left_alone(tmp_path: Path) -> None:
    """While a profiler of the program's own runs there is no window of ours; afterwards there are."""
    run = record(tmp_path / "run", [PROFILED, "own_profiler"], cwd=HERE)
    alone = plain([PROFILED, "own_profiler"], cwd=HERE)
    assert "own events True" in run.out
    assert told_by_torch(run.err) == told_by_torch(alone.stderr)
    told = run.told(0)
    assert told["user_profiler"]
    assert "user-profiler" in told["notes"]
    assert told["faults"] == []


@pytest.mark.parametrize("begun", ["8", "12"])
@pytest.mark.parametrize("kind", ["emit", "bare", "stopped"])
def test_any_profiler_of_torchs_ends_a_window_of_ours(tmp_path: Path, kind: str, begun: str) -> None:
    """In the light and the deep window: marks for other tools, the class below, one that is stepped after its stop."""
    run = record(tmp_path / "run", [PROFILED, "other_doors", kind, begun], cwd=HERE)
    alone = plain([PROFILED, "other_doors", kind, begun], cwd=HERE)
    # In old torch a profiler that is stepped after its stop ends the program by itself.
    assert (run.out, run.code) == (alone.stdout, alone.returncode), run.err
    told = run.told(0)
    assert "user-profiler" in told["notes"]
    assert told["faults"] == []


def test_own_cprofile_is_left_alone(tmp_path: Path) -> None:
    """Under a cProfile of the program's own there is no window of functions and no stack in the deep one.

    What it counts is the same as alone: on Python 3.12 and 3.13 that lacks what ran when torch was imported further.
    """
    run = record(tmp_path / "run", [PROFILED, "own_cprofile"], cwd=HERE)
    alone = plain([PROFILED, "own_cprofile"], cwd=HERE)
    assert run.out == alone.stdout
    assert "functions" not in run.window_names()
    assert "user-cprofile" in run.told(0)["notes"]


@pytest.mark.parametrize(("program", "problem"), [("files_limited", "disk-full"), ("always_profiled", "user-profiler")])
def test_what_could_not_be_recorded_says_why(tmp_path: Path, program: str, problem: str) -> None:
    """Twenty steps are enough, so it is not "too short": files may not grow, or a profiler of the program's own ran."""
    run = record(tmp_path / "run", [PROGRAMS, program], cwd=HERE)
    alone = plain([PROGRAMS, program], cwd=HERE)
    assert (run.out, run.code) == (alone.stdout, 0)
    assert told_by_torch(run.err) == told_by_torch(alone.stderr)
    assert run.result()["problem"] == run.told()["problem"] == problem


def test_limit_of_steps(tmp_path: Path) -> None:
    """``--steps 30`` ends the program at its thirtieth step, with its own clean-up, and exit code 0."""
    run = record(tmp_path / "run", [PROGRAMS, "endless"], cwd=HERE, steps=30)
    assert run.code == 0, run.err
    assert run.told(0)["steps_seen"] == 30
    assert run.out.endswith("tidied up\n")


def test_exit_once_everything_is_recorded(tmp_path: Path) -> None:
    """``--then exit`` ends the program when the last window is on disk."""
    run = record(tmp_path / "run", [PROGRAMS, "endless"], cwd=HERE, then_exit=True)
    assert run.code == 0, run.err
    assert run.told(0)["complete"]
    assert run.told(0)["steps_seen"] < 300
    assert run.out.endswith("tidied up\n")


def test_interrupt_is_passed_on(tmp_path: Path) -> None:
    """A SIGINT to the recorder reaches the program once; it tidies up and ends as one that was interrupted."""
    child = subprocess.Popen(
        command(tmp_path / "run", [PROGRAMS, "endless"]), cwd=HERE, env=environment(),
        stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    wait_for(tmp_path / "run" / "rank0" / "deep.trace.json")
    os.kill(child.pid, signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.endswith("tidied up\n")
    assert child.returncode == -signal.SIGINT
    assert readers.read(tmp_path / "run")[0].deep is not None


def test_limit_of_time_lets_a_job_in_the_background_tidy_up(tmp_path: Path) -> None:
    """A shell has such jobs ignore Ctrl-C: the program ends by itself all the same, and no file that asked it stays."""
    script = tmp_path / "endless.py"  # without torch, whose import may take longer than the limit on a busy machine
    script.write_text(
        "import time\ntry:\n    while True:\n        time.sleep(0.01)\nfinally:\n    print('tidied up')\n"
    )
    argv = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command(tmp_path / "run", [str(script)], seconds=5)]
    done = subprocess.run(argv, cwd=HERE, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("tidied up\n")
    assert not [path.name for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]


def test_limit_of_time_lets_a_job_in_the_background_end_as_it_means_to(tmp_path: Path) -> None:
    """It hears Ctrl-C all the same, by a handler of its own, which nothing of ours cuts short."""
    (tmp_path / "own.py").write_text(
        "import signal, sys, time\n"
        "def save(*_):\n"
        "    until = time.monotonic() + 1\n"
        "    while time.monotonic() < until: time.sleep(0.01)\n"
        "    sys.exit(print('saved'))\n"
        "signal.signal(signal.SIGINT, save)\n"
        "while True: time.sleep(0.01)\n"
    )
    run = command(tmp_path / "run", [str(tmp_path / "own.py")], seconds=4)
    argv = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *run]
    done = subprocess.run(argv, cwd=HERE, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "saved\n", "")


def test_armed_recording_waits_for_its_trigger(tmp_path: Path) -> None:
    """With ``--arm`` no window begins before ``uncork trigger PID``."""
    run = tmp_path / "run"
    child = subprocess.Popen(
        command(run, [PROGRAMS, "endless"], arm=True, then_exit=True), cwd=HERE, env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    wait_for(run / "rank0" / "recording.json")
    before = json.loads((run / "rank0" / "recording.json").read_text())
    assert before["windows"] == []
    assert before["steps_seen"] > 0
    trigger(child.pid)
    _, err = child.communicate(timeout=60)
    assert f"uncork trigger {child.pid}" in err
    after = json.loads((run / "rank0" / "recording.json").read_text())
    assert after["complete"]
    assert after["windows"][0]["first_step"] > 0


def told_by_torch(text: str) -> str:
    """Return what torch's profilers say on standard error, whenever and from whichever process."""
    return re.sub(r"\d+", "0", text)


def wait_for(path: Path, seconds: float = 60) -> None:
    """Wait until a file is there."""
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.05)
