"""Several recordings are read in several processes, as many as cores and memory allow, and none outlives the work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from uncork.errors import UnreadableError
from uncork.executors import local
from uncork.executors.local import Local

ROOT = Path(__file__).parent.parent.parent
LARGE_BYTES = 8 << 20


def process_of(path: Path) -> int:
    """Return in which process a file is worked on, after a while in which the others start."""
    time.sleep(0.3)
    assert path.exists()
    return os.getpid()


def at_once(path: Path) -> int:
    """Return in which process a file is worked on."""
    assert path.name
    return os.getpid()


def killed(path: Path) -> None:
    """End the process as a machine without memory does."""
    assert path.exists()
    os.kill(os.getpid(), signal.SIGKILL)


def asleep(path: Path) -> None:
    """Say that work has begun, and go on for a minute."""
    path.with_suffix(".begun").touch()
    time.sleep(60)


def hears_ctrl_c(path: Path) -> bool:
    """Return whether Ctrl-C would end this process."""
    assert path.exists()
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return three files that are each worth a process; processes that are started find the functions above."""
    monkeypatch.syspath_prepend(ROOT)
    found = [tmp_path / f"rank{rank}.json" for rank in range(3)]
    for path in found:
        path.touch()
        os.truncate(path, LARGE_BYTES)
    return found


def test_as_many_processes_as_memory_allows(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of 8 MiB take up to 12 MiB each: 30 MiB have room for two, 20 MiB for none beside this process."""
    for left_bytes, others in ((30 << 20, 2), (20 << 20, 0)):
        monkeypatch.setattr(local, "_memory_left_bytes", lambda left=left_bytes: left)
        used = set(Local(processes=3).map(process_of, paths))
        assert len(used - {os.getpid()}) == others
        assert (os.getpid() in used) == (others == 0)


def test_small_files_need_no_process(tmp_path: Path) -> None:
    """Starting an interpreter would take longer than reading them."""
    small = [tmp_path / f"{place}.json" for place in range(3)]
    for path in small:
        path.write_text("[]")
    assert set(Local(processes=3).map(process_of, small)) == {os.getpid()}


def test_very_many_small_files_share_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 files of 4 ms each pay for two interpreters, whatever they hold; 399 do not."""
    monkeypatch.syspath_prepend(ROOT)
    small = [tmp_path / f"{place}.json" for place in range(400)]
    assert os.getpid() not in set(Local(processes=3).map(at_once, small))
    assert set(Local(processes=3).map(at_once, small[1:])) == {os.getpid()}


def test_a_killed_process_is_told(paths: list[Path]) -> None:
    """A process that the machine ends gives one line that says what to do."""
    with pytest.raises(UnreadableError, match="fewer of them at a time"):
        list(Local(processes=2).map(killed, paths))


PROGRAM = """\
import sys, pathlib
from tests.unit import test_executors
from uncork.executors.local import Local
if __name__ == '__main__':
    work = getattr(test_executors, sys.argv[1])
    try:
        print(list(Local(processes=2).map(work, [pathlib.Path(path) for path in sys.argv[2:]])))
    except KeyboardInterrupt:
        sys.exit(130)
"""


def program(work: str, paths: list[Path]) -> subprocess.Popen[bytes]:
    """Return a running program that works on files in two processes."""
    script = paths[0].parent / "read.py"
    script.write_text(PROGRAM)
    return subprocess.Popen(
        [sys.executable, script, work, *map(str, paths)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals are others there")
@pytest.mark.parametrize(
    ("send", "number", "code"),
    [
        (getattr(os, "killpg", None), signal.SIGINT, 130),
        (os.kill, signal.SIGINT, 130),
        (os.kill, getattr(signal, "SIGKILL", 0), -9),
    ],
)
def test_no_process_outlives_the_first(
    paths: list[Path], send: Callable[[int, int], None], number: int, code: int
) -> None:
    """Whether Ctrl-C reaches all or the first alone, or that one is killed: soon none is left, without a traceback."""
    process = program("asleep", paths)
    until = time.monotonic() + 60
    while not all(path.with_suffix(".begun").exists() for path in paths[:2]) and time.monotonic() < until:
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    send(process.pid, number)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, b"Traceback" in err) == (code, b"", False)
    assert code == -9 or err == b""  # of one that was killed Python clears away what it left, and says so
    assert psutil.wait_procs(children, timeout=10)[1] == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_processes_hear_no_ctrl_c_from_their_first_moment(paths: list[Path]) -> None:
    """A signal that falls into their start would print a traceback; the first process ends them."""
    out, err = program("hears_ctrl_c", paths).communicate(timeout=60)
    assert (out.strip(), err) == (b"[False, False, False]", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are others there")
def test_a_bar_stands_in_a_terminal_alone(tmp_path: Path) -> None:
    """While a file is read a terminal shows how far it is, and is clean afterwards; a pipe gets nothing."""
    import pty

    path = tmp_path / "trace.json"
    event = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":%d,"dur":5}'
    path.write_text(f"[{','.join(event % (10 * place) for place in range(60_000))}]")
    command = [sys.executable, "-m", "uncork", "analyze", str(path)]
    ours, theirs = pty.openpty()
    plain = {key: value for key, value in os.environ.items() if key not in {"CI", "NO_COLOR"}} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=plain) as shown:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 65536):
                seen += piece
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(ours)
    assert shown.returncode == 0
    assert b"reading" in seen
    assert seen.count(b"\x1b[2K") > 1  # each line is wiped before the next, the last one too
    piped = subprocess.run(command, capture_output=True, check=True)
    assert piped.stderr == b""
