"""The loops of frameworks; each test is skipped where its framework is not installed."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.capture.runs import plain, record

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


CALLBACKS = [("transformers", "trainer", 8, "AdamW"), ("lightning", "lightning", 16, "SGD")]


@pytest.mark.parametrize(("package", "loop", "steps", "optimizer"), CALLBACKS, ids=[row[0] for row in CALLBACKS])
def test_a_callback_records_without_the_command(
    package: str, loop: str, steps: int, optimizer: str, tmp_path: Path
) -> None:
    """The framework's own callback begins and ends the recording: all steps, the real optimiser, a report beside it."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install {package}")
    done = plain([str(HERE / "frameworks.py"), loop, str(tmp_path / "run")], cwd=HERE.parent.parent)
    assert done.returncode == 0, done.stderr
    assert "profiler_st" not in done.stderr
    assert json.loads(done.stdout.strip().splitlines()[-1]) == [steps, "loader", optimizer]
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize("package", [row[0] for row in CALLBACKS])
def test_under_the_command_a_callback_leaves_the_recording_alone(package: str, tmp_path: Path) -> None:
    """``uncork run`` records already: the callback makes no folder and no report of its own."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}: pip install {package}")
    (tmp_path / "ask.py").write_text(
        f"import torch\nfrom uncork.{package} import UncorkCallback\ncallback = UncorkCallback('other')\n"
        "recording = callback.recording\nrecording.begin(str)\nrecording.end()\nprint(recording.report)\n"
    )
    run = record(tmp_path / "run", [str(tmp_path / "ask.py")], cwd=tmp_path)
    assert (run.code, run.out) == (0, "None\n"), run.err
    assert not (tmp_path / "other").exists()
