"""Tests of what is done on the main thread for a thread beside it."""

import subprocess
import sys

import pytest

from uncork.capture.left_open import is_in_compiler

PROGRAM = """
import _thread, signal, sys, time
from uncork.capture.turns import Turn

def handler(number, frame):
    raise TimeoutError("the program's own")

def theirs():
    if sys.argv[1] == "fault":
        raise ValueError("ours")
    signal.raise_signal(signal.SIGALRM if sys.argv[1] == "handler" else signal.SIGINT)

def beside():
    time.sleep(0.05)
    Turn(theirs).ask()

signal.signal(signal.SIGALRM, handler)
_thread.start_new_thread(beside, ())
until = time.monotonic() + 1
try:
    while time.monotonic() < until:
        sum(range(100))
    print("nothing came")
except BaseException as raised:
    print(type(raised).__name__)
"""


@pytest.mark.parametrize(
    ("what", "comes"),
    [("handler", "TimeoutError"), ("interrupt", "KeyboardInterrupt"), ("fault", "nothing came")],
)
def test_what_the_program_raises_meanwhile_is_the_program_s(what: str, comes: str):
    """A handler's exception and Ctrl-C that fall into our turn come up in the program; a fault of ours does not."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, what], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr, ran.returncode) == (f"{comes}\n", "", 0)


ORDER = """
import _thread, threading, time
from uncork.capture.turns import Turn

seen = []
turn = Turn(lambda: seen.append(threading.get_ident()))

def beside():
    for _ in range(3):
        turn.ask()
        seen.append("asked")

_thread.start_new_thread(beside, ())
until = time.monotonic() + 5
while seen.count("asked") < 3 and time.monotonic() < until:
    pass
print(seen == [threading.get_ident(), "asked"] * 3)
"""


def test_a_turn_is_done_on_the_main_thread_before_the_next_is_asked_for():
    """Three times: first the main thread has done it, then the one beside goes on."""
    ran = subprocess.run([sys.executable, "-c", ORDER], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


IMPORT = """
import _thread, time
from uncork.capture.turns import Turn

source = "def importing(begun, asked):\\n    begun.append(1)\\n    while not asked:\\n        str(1)\\n"
exec(compile(source, "<frozen importlib._bootstrap>", "exec"))
done, begun, asked, left = [], [], [], []

def beside():
    while not begun:
        time.sleep(0.01)
    for _ in range(2):
        Turn(lambda: done.append(1)).ask()
        asked.append(len(done))
        while not left:
            time.sleep(0.01)

_thread.start_new_thread(beside, ())
importing(begun, asked)
left.append(1)
while len(asked) < 2:
    str(1)
print(asked)
"""


def test_nothing_is_done_amid_an_import():
    """The import system's locks do not bear it: what is asked for then is left, and done when it is asked for later."""
    ran = subprocess.run([sys.executable, "-c", IMPORT], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.stdout, ran.stderr) == ("[0, 1]\n", "")


@pytest.mark.parametrize(("file", "inside"), [("torch/_dynamo/eval_frame.py", True), ("my_dynamo/torch.py", False)])
def test_no_window_begins_where_the_compiler_is_at_work(file: str, inside: bool):
    """Its frames are seen from any depth below them, by the file that they come from; others are not."""
    code = compile("found = ask()", f"/lib/{file}", "exec")
    names = {"ask": lambda: is_in_compiler(sys._getframe())}
    exec(code, names)  # noqa: S102  # a frame of that file
    assert names["found"] is inside
