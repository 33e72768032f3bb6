"""FunctionsProbe: a profiler that the program begins in a window of ours counts as if ours were not there."""

import cProfile
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from uncork.capture.probes import FunctionsProbe
from uncork.capture.standard import standard


def work() -> None:
    """Be counted."""


@pytest.fixture(autouse=True)
def free_slot() -> Iterator[None]:
    """Take a profiler of the tests' own off (coverage, say) and put it back."""
    before = sys.getprofile()
    sys.setprofile(None)
    yield
    sys.setprofile(before)


def calls_of_work(profile: cProfile.Profile) -> int:
    """Return how often a profile saw the function above."""
    profile.create_stats()
    return sum(row[0] for (_, _, name), row in profile.stats.items() if name == "work")  # type: ignore[attr-defined]


def test_the_programs_cprofile_goes_on_when_ours_ends(tmp_path: Path) -> None:
    """It sees the call before our window ends and the one after, and ours, which it replaced, leaves no half count."""
    ours, theirs = FunctionsProbe(), cProfile.Profile()
    ours.start()
    theirs.enable()
    work()
    found = ours.stop(tmp_path / "functions.pstats")
    work()
    theirs.disable()
    assert calls_of_work(theirs) == 2
    assert found == {}
    assert not list(tmp_path.iterdir())


def test_the_programs_profile_function_stays_set(tmp_path: Path) -> None:
    """One that the program sets inside our window is still there afterwards."""
    ours = FunctionsProbe()
    ours.start()
    sys.setprofile(told := lambda *_: None)
    ours.stop(tmp_path / "functions.pstats")
    still = sys.getprofile()
    sys.setprofile(None)
    assert still is told


def test_a_profile_that_came_and_went_leaves_no_half_count(tmp_path: Path) -> None:
    """The program's profiler of one step, begun and ended inside our window, has ended ours; the slot is free."""
    ours, theirs = FunctionsProbe(), cProfile.Profile()
    ours.start()
    theirs.enable()
    theirs.disable()
    assert ours.stop(tmp_path / "functions.pstats") == {}
    assert sys.getprofile() is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs Python 3.12, for sys.monitoring")
def test_the_slot_for_profilers_is_left_to_who_asks() -> None:
    """A tool that claims it meanwhile gets it, and asks Python itself again once our window is over."""
    asked = sys.monitoring.use_tool_id
    ours = FunctionsProbe()
    ours.start()
    sys.monitoring.use_tool_id(sys.monitoring.PROFILER_ID, "theirs")
    sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)
    ours.discard()
    assert sys.monitoring.use_tool_id is asked


def test_an_undisturbed_count_is_written(tmp_path: Path) -> None:
    """Three calls are in the file, and the slot is free again."""
    ours = FunctionsProbe()
    ours.start()
    for _ in range(3):
        work()
    found = ours.stop(tmp_path / "functions.pstats")
    assert found["calls"] >= 3
    assert b"work" in (tmp_path / "functions.pstats").read_bytes()
    assert sys.getprofile() is None


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="needs Python 3.11 or older: later ones call nothing there")
def test_a_ctrl_c_amid_the_end_leaves_no_count_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The window is given up after it, and each call of the program would be counted for good."""
    asked = sys.getprofile
    ours = FunctionsProbe()
    ours.start()

    def interrupted() -> None:
        monkeypatch.setattr(sys, "getprofile", asked)
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "getprofile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ours.stop(tmp_path / "functions.pstats")
    ours.discard()
    assert sys.getprofile() is None


def test_an_installed_package_is_none_of_pythons_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed packages lie in a folder below Python's library, and may have the name of one of its modules."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "theirs_by_name.py").write_text("raise SystemExit\n")
    (tmp_path / "own_by_name.py").write_text("here = 1\n")
    monkeypatch.setattr("uncork.capture.standard.LIBRARY", (f"{os.path.realpath(tmp_path)}{os.sep}",))
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert standard("own_by_name").here == 1
    with pytest.raises(ImportError):
        standard("theirs_by_name")
    monkeypatch.delitem(sys.modules, "own_by_name")
