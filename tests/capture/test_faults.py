"""A fault of ours never reaches the program: each part is broken in turn, and the losses stay equal to the bit."""

from pathlib import Path

import pytest

from tests.capture.runs import plain, record
from tests.capture.sabotage_parts import PARTS

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def alone() -> str:
    """Return what the program prints without us."""
    return plain([str(HERE / "sabotage.py"), "none"], cwd=HERE).stdout


@pytest.mark.parametrize("part", PARTS)
def test_program_does_not_notice(part: str, alone: str, tmp_path: Path) -> None:
    """Output, error output and exit code are those of a plain run; where it can, the recording tells of the fault."""
    watched = record(tmp_path / "run", [str(HERE / "sabotage.py"), part], cwd=HERE)
    assert (watched.out, watched.err, watched.code) == (alone, "", 0)
    assert alone.count("\n") == 21
    if part not in ("files", "sampler", "finish", "settings", "spans"):
        told = watched.told(0)
        assert "recorder-fault" in told["notes"]
        assert f"injected fault in {part}" in told["faults"][0]
