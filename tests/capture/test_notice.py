"""People at a terminal are told once that a long program's recording is complete; nobody else is told anything."""

import io

import pytest

from uncork.capture.supervisor import Notice


class Terminal(io.StringIO):
    """Standard error that is, or is not, a terminal."""

    def __init__(self, tty):
        super().__init__()
        self.tty = tty

    def isatty(self):
        """Return what the test wants."""
        return self.tty


@pytest.mark.parametrize(("tty", "told"), [(True, 1), (False, 0)])
def test_a_complete_recording_is_told_once_and_only_on_a_terminal(tty, told, tmp_path, monkeypatch):
    """Nothing before all is recorded, nothing in a pipe, one line on a terminal however often it is looked at."""
    out = Terminal(tty)
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr(Notice, "PATIENCE_S", 0.0)
    notice = Notice(tmp_path, "en")
    notice.look()
    assert out.getvalue() == ""
    (tmp_path / "rank0").mkdir()
    (tmp_path / "rank0" / "complete").touch()
    for _ in range(3):
        notice.look()
    assert out.getvalue().count(f"uncork analyze {tmp_path}") == told
