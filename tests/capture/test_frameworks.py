"""The loops of frameworks; each test is skipped where its framework is not installed."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.capture.runs import record

pytestmark = [pytest.mark.torch, pytest.mark.slow]
HERE = Path(__file__).parent
LOOPS = [
    ("accelerate", "accelerate", "loader"),
    ("transformers", "trainer", "loader"),
    ("lightning", "lightning", "loader"),
    ("transformers", "generate", "inference"),
]


@pytest.mark.parametrize(("package", "loop", "rule"), LOOPS, ids=[loop for _, loop, _ in LOOPS])
def test_steps_are_exact(package: str, loop: str, rule: str, tmp_path: Path) -> None:
    """The recorder counts the framework's own steps, its checks and validations left out."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install {package}")
    run = record(tmp_path / "run", [str(HERE / "frameworks.py"), loop], cwd=HERE.parent.parent, skip=10**9)
    assert run.code == 0, run.err
    expected, got, by, faults = json.loads(run.out.strip().splitlines()[-1])
    assert (got, by, faults) == (expected, rule, [])
