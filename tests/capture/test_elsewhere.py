"""Where there is no Linux: what Windows and macOS lack is taken away; a program is recorded all the same."""

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.runs import environment
from uncork.capture import budget, signals
from uncork.capture.supervisor import Limit

HERE = Path(__file__).parent


@pytest.mark.torch
def test_a_program_is_recorded_where_there_is_no_linux(tmp_path: Path) -> None:
    """All three windows are there, nothing of ours failed, and what has no source is missing instead of wrong."""
    argv = [HERE / "elsewhere.py", "uncork", "run", "-q", "-o", tmp_path / "run", HERE / "elsewhere_loop.py"]
    done = subprocess.run(
        [sys.executable, *map(str, argv)], env=environment(), cwd=HERE, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    run = json.loads((tmp_path / "run" / "recording.json").read_text("utf-8"))
    assert (run["exit_code"], run["problem"]) == (0, "")
    assert not {"memory_bytes", "cores_allowed"} & set(run["host"])
    rank = json.loads((tmp_path / "run" / "rank0" / "recording.json").read_text("utf-8"))
    assert {"light", "functions", "deep"} <= {window["name"] for window in rank["windows"]}
    assert json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))["verdict"]


class Windows:
    """A child process there: one signal ends it, others cannot be sent."""

    def __init__(self) -> None:
        self.got: list[int] = []

    def send_signal(self, number: int) -> None:
        """Take a signal."""
        if number == signal.SIGINT:
            raise ValueError("Unsupported signal")
        self.got.append(number)


def test_a_limit_asks_by_note_where_no_interrupt_can_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The note comes first, the signal after the time of grace."""
    note, child = tmp_path / "note", Windows()
    monkeypatch.setattr("uncork.capture.supervisor.GRACE_S", 0.0)
    limit = Limit(0.0, note)
    limit.press(child)  # type: ignore[arg-type]
    assert (note.exists(), child.got) == (True, [])
    limit.press(child)  # type: ignore[arg-type]
    assert child.got == [signal.SIGTERM]


def test_a_note_ends_a_program_as_an_interrupt_would(tmp_path: Path) -> None:
    """Its own clean-up runs."""
    program = (
        "import sys, time; from uncork.capture import ending\n"
        "ending.CANNOT_BE_SENT = True\n"
        "ending.obey(sys.argv[1])\n"
        "open(ending.note_for(__import__('os').getpid(), sys.argv[1]), 'w').close()\n"
        "try:\n    [time.sleep(0.05) for _ in range(600)]\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"


def test_a_consoles_interrupt_is_not_sent_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """All who share a Windows console have it already, and what `os.kill` sends there would end the program."""
    sent: list[tuple[int, int]] = []
    monkeypatch.delattr(os, "tcgetpgrp")
    monkeypatch.setattr(os, "kill", lambda *what: sent.append(what))
    relay = signals.Relay()
    relay._can_wait = False
    relay.attach(12345)
    relay._note(signal.SIGINT, None)
    assert sent == []
    relay._note(signal.SIGTERM, None)
    assert sent == [(12345, signal.SIGTERM)]


def test_a_heap_without_a_c_library_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """`ctypes.CDLL(None)` is a `TypeError` on Windows."""

    def refuse(name: object) -> None:
        raise TypeError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    budget._mallinfo.cache_clear()
    try:
        assert budget._mallinfo() is None
    finally:
        budget._mallinfo.cache_clear()
