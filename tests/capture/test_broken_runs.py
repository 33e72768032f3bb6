"""What broke uncork once: files of others in the run folder, and exit codes that were not the program's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from uncork.capture.samples import HostSampler
from uncork.cli import main

WITHOUT_STEPS = "import sys, torch\nsys.exit(int(sys.argv[1]))\n"


def run(folder: Path, code: int, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Return what ``uncork run`` did with a program that imports torch, makes no step, and ends with a code."""
    (folder / "train.py").write_text(WITHOUT_STEPS, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "uncork", "run", "-o", str(out), "train.py", str(code)],
        cwd=folder, env={**os.environ, "LANG": "C", **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("environment", [{}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_files_of_others_are_never_removed(tmp_path: Path, environment: dict[str, str]) -> None:
    """A folder with checkpoints in ``rank0`` is refused before the program starts, and left as it was."""
    saved = tmp_path / "out" / "rank0" / "checkpoint.pt"
    saved.parent.mkdir(parents=True)
    saved.write_text("weeks of work", encoding="utf-8")
    refused = run(tmp_path, 0, tmp_path / "out", **environment)
    assert (refused.returncode, saved.read_text(encoding="utf-8")) == (2, "weeks of work")
    assert "Name a new run folder" in refused.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["rank0"]


@pytest.mark.parametrize("code", [0, 7])
def test_no_report_costs_no_exit_code(tmp_path: Path, code: int) -> None:
    """Where nothing could be analysed, a line says so; what runs after the program sees the program's own code."""
    done = run(tmp_path, code, tmp_path / "out")
    assert done.returncode == code
    assert done.stderr.startswith("uncork: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_rank_that_is_no_number_is_rank_zero(tmp_path: Path) -> None:
    """RANK may be another tool's word; the program runs all the same."""
    assert run(tmp_path, 3, tmp_path / "out", RANK="first", WORLD_SIZE="").returncode == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a file that is always on a full disk")
def test_a_full_disk_ends_no_watch_over_the_program() -> None:
    """Samples that cannot be written are lost; the supervisor stays with the program, through its last sample."""
    sampler = HostSampler(Path("/dev/full"), os.getpid())
    for _ in range(400):
        sampler.take()
    sampler.close()


@pytest.mark.parametrize("limit", ["--steps=-4", "--steps=0", "--skip=-1", "--for=nan", "--for=1e999", "--for=-5s"])
def test_limits_that_mean_nothing_are_refused(limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program is not started to be stopped before its first step, nor watched for a time that never comes."""
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('started')\n", encoding="utf-8")
    assert main(["run", "-o", str(tmp_path / "out"), limit, str(script)]) == 2
    assert "is no " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
