"""Several recordings are read in several processes, as many as cores and memory allow, and none outlives the work."""

import os
import signal
import subprocess
import sys
import time
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


def killed(path: Path) -> None:
    """End the process as a machine without memory does."""
    assert path.exists()
    os.kill(os.getpid(), signal.SIGKILL)


def asleep(path: Path) -> None:
    """Say that work has begun, and go on for a minute."""
    path.with_suffix(".begun").touch()
    time.sleep(60)


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


def test_a_killed_process_is_told(paths: list[Path]) -> None:
    """A process that the machine ends gives one line that says what to do."""
    with pytest.raises(UnreadableError, match="fewer of them at a time"):
        list(Local(processes=2).map(killed, paths))


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal there signals otherwise")
@pytest.mark.parametrize("to_all", [True, False])
def test_ctrl_c_ends_all_processes_at_once(paths: list[Path], to_all: bool) -> None:
    """Whether all processes hear of it or the first alone: within seconds none is left, and no traceback is shown."""
    program = (
        "import sys, pathlib\nfrom tests.unit.test_executors import asleep\nfrom uncork.executors.local import Local\n"
        "if __name__ == '__main__':\n    try:\n"
        "        list(Local(processes=2).map(asleep, [pathlib.Path(path) for path in sys.argv[1:]]))\n"
        "    except KeyboardInterrupt:\n        sys.exit(130)\n"
    )
    script = paths[0].parent / "read.py"
    script.write_text(program)
    process = subprocess.Popen(
        [sys.executable, script, *map(str, paths)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not all(path.with_suffix(".begun").exists() for path in paths[:2]) and time.monotonic() < until:
        time.sleep(0.05)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert (process.returncode, told) == (130, b"")
    assert psutil.wait_procs(children, timeout=10)[1] == []
