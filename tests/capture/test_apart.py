"""What a program can see of the recorder: nothing, however closely it looks at torch."""

from pathlib import Path

import pytest

from tests.capture.runs import plain, record

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
PROGRAMS = str(HERE / "programs.py")


@pytest.mark.parametrize("program", ["counts_calls", "calls_itself", "without_values", "by_value"])
def test_a_program_that_looks_closely_sees_the_same(tmp_path: Path, program: str) -> None:
    """Its output and exit code are as without the recorder, which meets no fault."""
    alone = plain([PROGRAMS, program], cwd=HERE)
    run = record(tmp_path / "run", [PROGRAMS, program], cwd=HERE)
    assert (run.out, run.code) == (alone.stdout, 0)
    assert not (tmp_path / "run" / "recorder-fault").exists()
    if program != "by_value":
        assert {"light", "deep"} <= set(run.window_names())
        assert run.told(0)["faults"] == []
