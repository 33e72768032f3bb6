"""Real runs of the compute rules' examples: the slow script has the finding, its fix has not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TIMEOUT_S = 300
RULES = {
    # example: (rule, function that the finding names)
    "rows_in_a_loop": ("python-loop-over-tensor", "row_by_row"),
    "dropout_in_inference": ("training-mode-in-inference", "predict"),
}

pytestmark = [pytest.mark.slow, pytest.mark.torch]


def findings(example: str, name: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the findings about a script by rule."""
    out = folder / f"{name}.json"
    command = [sys.executable, "-m", "uncork", "run", "-q", "-o", folder / name, "--json", out]
    done = subprocess.run(
        [*map(str, command), str(EXAMPLES / example / f"{name}.py")],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {finding["rule"]: finding for finding in json.loads(out.read_text("utf-8"))["findings"]}


@pytest.mark.parametrize("example", list(RULES))
def test_the_slow_script_has_the_finding_and_the_fast_one_has_not(example: str, tmp_path: Path):
    """The rule names the function that was made slow, and is silent once it is mended."""
    rule, function = RULES[example]
    slow, fast = (findings(example, name, tmp_path) for name in ("slow", "fast"))
    assert slow[rule]["location"]["function"] == function
    assert slow[rule]["location"]["file"].endswith("slow.py")
    assert rule not in fast
