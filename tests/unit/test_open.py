"""Where pages are written and opened, and what is asked of ranks that are not there."""

from pathlib import Path

import pytest

from uncork.cli import main
from uncork.testing import write_traces


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the addresses that the browser is given."""
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: addresses.append(address) or True)
    return addresses


def _trace(folder: Path) -> Path:
    (path,) = write_traces("steps 2 x 10ms\n  main 0ms..9ms aten::mm\n", folder)
    return path


def test_a_recording_s_page_lies_beside_it(
    opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not where the command was typed; under a name of its own, which is printed; at the place that was asked for."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    trace = _trace(tmp_path)
    monkeypatch.chdir(elsewhere)
    assert main(["open", str(trace), "--at", "view=steps"]) == 0
    out, err = capsys.readouterr()
    page = Path(out.strip())
    assert page.parent == tmp_path
    assert "kept beside the recording" in err
    assert err.endswith(f"type: uncork analyze {trace} --html FILE\n")
    assert page.name.endswith(".uncork.html")
    assert page.is_file()
    assert list(elsewhere.iterdir()) == []
    assert opened == [f"{page.as_uri()}#view=steps"]


def test_a_folder_that_may_only_be_read_is_left_alone(
    opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page then lies in a new folder for temporary files, open to nobody else."""
    from uncork.cli import open as verb
    from uncork.errors import UncorkError

    write, refused = verb.write, []

    def refusing(target: str, text: str) -> None:
        if Path(target).parent == tmp_path:
            refused.append(target)
            raise UncorkError("cannot write")
        write(target, text)

    monkeypatch.setattr(verb, "write", refusing)
    assert main(["open", str(_trace(tmp_path))]) == 0
    out, err = capsys.readouterr()
    page = Path(out.strip())
    assert "nothing can be written beside the recording" in err
    assert len(err.splitlines()) == 1
    assert refused
    assert page.parent != tmp_path
    assert page.parent.stat().st_mode & 0o077 == 0
    assert opened == [page.as_uri()]


def test_a_rank_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the ranks that are there, nothing written, exit code 2."""
    page = tmp_path / "page.html"
    assert main(["analyze", str(_trace(tmp_path)), "--rank", "99", "--html", str(page)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "99" in err
    assert len(err.strip().splitlines()) == 1
    assert not page.exists()


def test_compare_speaks_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Steps of 10 ms became 20: the sentence as heading, causes as a table, nothing else on standard output."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (before,) = write_traces("steps 5 x 10ms\n  main 0ms..9ms aten::mm\n", tmp_path / "a")
    (after,) = write_traces("steps 5 x 20ms\n  main 0ms..19ms aten::mm\n", tmp_path / "b")
    assert main(["compare", str(before), str(after), "--markdown", "-", "--lang", "en"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("### 2× slower: 10.0 ms → 20.0 ms per step (+100 %).\n")
    assert "| compute operators | 9.00 ms | 19.0 ms | +10.0 ms |" in out
    assert "\n| aten::mm | 9.00 ms | 19.0 ms | +10.0 ms |" in out
