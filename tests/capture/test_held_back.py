"""What C writes to standard error while Kineto is made ready on a thread: all but one line of it follows."""

import ctypes
import sys
import threading

import pytest

from uncork.capture.versions import THREAD_LINE, HeldBack

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only glibc's standard error is held")


def held(words: list[bytes]) -> None:
    """Write words as C code does, while it is held."""
    libc = ctypes.CDLL(None)
    holding = HeldBack()
    for one in words:
        libc.perror(one)
    holding.end()
    holding.end()


def test_on_a_thread_all_but_the_line_follows(capfd: pytest.CaptureFixture[str]) -> None:
    """A program's own words come in order, before and after; Kineto's line is gone, and the stream is C's again."""
    thread = threading.Thread(target=held, args=([b"one", b"ERROR: " + THREAD_LINE + b" (1 != 2)", b"two"],))
    thread.start()
    thread.join()
    ctypes.CDLL(None).perror(b"three")
    assert [line.split(":")[0] for line in capfd.readouterr().err.splitlines()] == ["one", "two", "three"]


def test_on_the_main_thread_nothing_is_held(capfd: pytest.CaptureFixture[str]) -> None:
    """Torch is imported there, so Kineto has nothing to say."""
    held([THREAD_LINE])
    assert THREAD_LINE.decode() in capfd.readouterr().err
