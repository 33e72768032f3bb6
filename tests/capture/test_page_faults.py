"""What the system counts of a process in windows without a profiler."""

import mmap
import os
from pathlib import Path

import pytest

from tests.capture.runs import record
from uncork import readers
from uncork.capture import probes, settings

HERE = Path(__file__).parent
FRESH = (4 << 20) // mmap.PAGESIZE


@pytest.mark.torch
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells")
def test_pages_that_each_step_takes_and_gives_back_are_counted(tmp_path: Path) -> None:
    """4 MiB a step in pages of 4 KiB are 1024 faults, in the first baseline and in the later one; nothing grows."""
    run = record(tmp_path / "run", [str(HERE / "programs.py"), "fresh_pages"], cwd=HERE)
    assert run.code == 0, run.err
    (recording,) = readers.read(run.folder)
    assert recording.run
    assert recording.run.first_baseline
    later = next(one for one in recording.run.windows if one.name == "baseline2")
    for window in (recording.run.first_baseline, later):
        assert window.paging
        steps = len(window.step_ns)
        assert FRESH <= window.paging.faults / steps < 1.5 * FRESH  # Python and torch take a few of their own
        assert window.paging.growth_pages < FRESH
        assert 0 <= window.paging.system_ns <= window.paging.cpu_ns
    assert [one.paging for one in recording.run.windows if one.name in ("light", "deep")] == [None, None]
    assert recording.run.settings["malloc"] == []
    assert str(recording.run.settings["libc"]) == (os.confstr("CS_GNU_LIBC_VERSION") or "")


def test_counts_that_cannot_be_read_at_first_are_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program may have no file left to open when the window begins, and have closed some when it ends."""
    monkeypatch.setattr(probes, "_counts", iter(({}, {"faults": 7})).__next__)
    probe = probes.BaselineProbe()
    probe.start()
    assert probe.stop(tmp_path / "nothing") == {}
    monkeypatch.setattr(probes, "_counts", iter(({"faults": 7}, {"faults": 9})).__next__)
    probe.start()
    assert probe.stop(tmp_path / "nothing") == {"faults": 2}


def test_what_was_set_for_the_allocator_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that say what malloc keeps, its tunables, and preloaded allocators by name; nothing else."""
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2:/home/me/jemalloc/libother.so")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1:glibc.malloc.top_pad=7")
    told = settings._malloc()["malloc"]
    assert told == ["libjemalloc.so.2", "MALLOC_TRIM_THRESHOLD_=1", "glibc.malloc.top_pad=7"]
