"""What a program does before its steps is told apart from them."""

from dataclasses import replace

import pytest

from uncork.measure import measure
from uncork.recording import RunInfo
from uncork.sections import run_section
from uncork.testing import sketch

PYTHON = {"python_ns": 1_000, "torch_ns": 1_400, "torch_ended_ns": 3_400}


@pytest.mark.parametrize(
    ("seen", "phases"),
    [
        (
            {**PYTHON, "step_ns": 4_000, "step_ended_ns": 4_700},
            {"before_torch_ns": 400, "import_torch_ns": 2_000, "setup_ns": 600, "first_step_ns": 700},
        ),
        (
            {**PYTHON, "step_ended_ns": 4_700},
            {"before_torch_ns": 400, "import_torch_ns": 2_000, "until_second_step_ns": 1_300},
        ),
        (PYTHON, {"before_torch_ns": 400, "import_torch_ns": 2_000}),
        ({}, {}),
        ({"python_ns": 5, "torch_ns": 4}, {}),  # a clock that was set back tells nothing
    ],
)
def test_phases_before_the_steps(seen: dict[str, int], phases: dict[str, int]) -> None:
    """Differences of the times seen; a first step without a known begin is told together with the set-up."""
    (recording,) = sketch("steps 4 x 10ms\n  main 0ms..5ms aten::mm\n")
    told = run_section([measure(replace(recording, run=RunInfo(startup=seen)))], [0], 0)
    assert told["startup"] == phases
