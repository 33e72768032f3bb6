"""Signals that fall into the recorder: what they raise is the program's, and so is every frame that it is shown."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.capture.runs import Run, no_stacks, record

pytestmark = pytest.mark.torch
PROGRAM = """
import os, signal, sys, traceback
from functools import partial
from importlib import import_module
from types import SimpleNamespace
import torch

def handler(number, frame):
    print([one.name for one in traceback.extract_stack()], flush=True)
    mend()
    raise TimeoutError("late")

def train(steps):
    weight = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight])
    for _ in range(steps):
        (weight * 2).sum().backward()
        optimizer.step()

def mend():
    files.os = os

def fall():
    files.os = SimpleNamespace(getpid=partial(signal.raise_signal, getattr(signal, sys.argv[1])))

signal.signal(signal.SIGALRM, handler)
files = import_module("uncork.capture.files")
if sys.argv[2] == "at-end":
    train(20)
    fall()
else:
    train(3)
    fall()
    try:
        train(20)
    except (TimeoutError, KeyboardInterrupt):
        if sys.argv[2] == "uncaught":
            raise
        traceback.print_exc(file=sys.stdout)
        mend()
    train(20)
"""
AT_A_STEP = """Traceback (most recent call last):
  File "late.py", line 35, in <module>
    train(20)
  File "late.py", line 18, in train
    optimizer.step()
"""
RAISED = {
    "SIGALRM": '  File "late.py", line 11, in handler\n    raise TimeoutError("late")\nTimeoutError: late\n',
    "SIGINT": "KeyboardInterrupt\n",
}
STACK = {"SIGALRM": "['<module>', 'train', 'handler']\n", "SIGINT": ""}
"""What the program's handler prints of its own stack."""

AMID = """
import ctypes, signal, sys
from importlib import import_module
from pathlib import Path
import torch

def falls(*args, **kwargs):
    if is_on() and not fallen:
        fallen.append(sys.argv[3])
        signal.raise_signal(signal.SIGINT)
    return whole(*args, **kwargs)

def is_on():
    return torch._C._autograd._profiler_enabled() or level() > before

def level():
    (path,) = (Path(torch.__file__).parent / "lib").glob("libc10.[sd]*")
    return ctypes.c_int.in_dll(ctypes.CDLL(str(path)), "FLAGS_caffe2_log_level").value

module = import_module(sys.argv[1])
owner = getattr(module, sys.argv[2], module)
whole, fallen, before = getattr(owner, sys.argv[3]), [], level()
setattr(owner, sys.argv[3], falls)
weight = torch.ones(4, requires_grad=True)
optimizer = torch.optim.SGD([weight])
for _ in range(40):
    try:
        (weight * 2).sum().backward()
        optimizer.step()
    except KeyboardInterrupt:
        print(torch._C._autograd._profiler_enabled(), level() - before, flush=True)
print(fallen, level() - before)
"""
PLACES = {
    "wait": ("uncork.capture.probes", "", "let_collectives_end"),
    "begin": ("torch.autograd.profiler", "profile", "_prepare_trace"),
    "counts": ("uncork.capture.core_time", "CoreTime", "facts"),
}
"""Where a Ctrl-C falls while a trace begins, is on, or ends: module, class, function."""


@pytest.mark.parametrize("place", PLACES)
def test_no_trace_stays_on_after_a_ctrl_c_that_is_caught(tmp_path: Path, place: str) -> None:
    """Torch would crash with it at the exit, print lines of its own, or be silent for good; later windows come."""
    (tmp_path / "amid.py").write_text(AMID)
    run = record(tmp_path / "run", ["amid.py", *PLACES[place]], cwd=tmp_path)
    assert (run.out, run.err, run.code) == (f"False 0\n['{PLACES[place][2]}'] 0\n", "", 0)
    assert {"light", "baseline2"} & set(run.window_names())


COLLECTING = """
import gc, signal, sys, time
import torch

def late(number, frame):
    raise TimeoutError("late")

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

kind, handler, wait = (TimeoutError, late, spin) if sys.argv[1] == "spins" else (
    KeyboardInterrupt, signal.default_int_handler, time.sleep)
signal.signal(signal.SIGALRM, handler)
kept = [[] for _ in range(500_000)]
for _ in range(5):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        gc.collect()
        wait(5)
        print("lost")
    except kind as error:
        print(repr(error))
print(signal.getsignal(signal.SIGURG) is signal.SIG_DFL)
signal.setitimer(signal.ITIMER_REAL, 0.002)
gc.collect()
wait(5)
"""


@pytest.mark.parametrize(("way", "raised"), [("spins", "TimeoutError('late')"), ("sleeps", "KeyboardInterrupt()")])
def test_what_falls_into_a_collection_is_raised_after_it(tmp_path: Path, way: str, raised: str) -> None:
    """Python prints and forgets what a handler raises in the collector's callbacks, and ours is one."""
    (tmp_path / "collecting.py").write_text(COLLECTING)
    run = record(tmp_path / "run", ["collecting.py", way], cwd=tmp_path)
    assert run.out == f"{raised}\n" * 5 + "True\n"
    assert "uncork" not in run.err
    assert "ignored" not in run.err
    assert run.err.endswith({"spins": "TimeoutError: late\n", "sleeps": "KeyboardInterrupt\n"}[way])


@pytest.fixture(params=["SIGALRM", "SIGINT"])
def signalled(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Return a signal, and the folder of a program into whose recorder it falls once that writes a file."""
    (tmp_path / "late.py").write_text(PROGRAM)
    return request.param, tmp_path


def ran(signalled: tuple[str, Path], when: str) -> Run:
    """Return the recording of the program."""
    name, folder = signalled
    run = record(folder / "run", ["late.py", name, when], cwd=folder)
    return replace(run, out=bare(run.out, folder), err=bare(run.err, folder))


def bare(text: str, folder: Path) -> str:
    """Return what was printed without the folder, and without the marks below a line that Python sets from 3.13 on."""
    return re.sub(r"\n +[~^]+(?=\n)", "", text.replace(f"{folder}/", ""))


def test_what_the_program_prints_shows_its_own_frames(signalled: tuple[str, Path]) -> None:
    """The traceback that it prints, and the stack that its handler sees, know nothing of ours; it goes on."""
    run = ran(signalled, "caught")
    assert (run.out, run.err, run.code) == (STACK[signalled[0]] + AT_A_STEP + RAISED[signalled[0]], "", 0)


def test_a_handler_s_exception_is_told_as_the_program_s(signalled: tuple[str, Path]) -> None:
    """It ends the recording, and is no fault of ours; Ctrl-C ends no recording."""
    run = ran(signalled, "caught")
    is_handler = signalled[0] == "SIGALRM"
    assert run.told(0)["notes"] == (["handler-raised"] if is_handler else no_stacks())
    assert (run.folder / "handler-raised").exists() == is_handler
    assert ("baseline2" in run.window_names()) != is_handler


def test_what_ends_the_program_shows_its_own_frames(signalled: tuple[str, Path]) -> None:
    """Where nobody catches it, Python's own traceback is that of a plain run."""
    run = ran(signalled, "uncaught")
    assert (run.out, run.err) == (STACK[signalled[0]], AT_A_STEP + RAISED[signalled[0]])
    assert run.code == {"SIGALRM": 1, "SIGINT": -2}[signalled[0]]


def test_a_signal_at_the_very_end_changes_nothing(signalled: tuple[str, Path]) -> None:
    """The program would have ended by then: nothing is said, and its exit code stands."""
    run = ran(signalled, "at-end")
    assert (run.err, run.code) == ("", 0)
    assert {"light", "deep"} <= set(run.window_names())
