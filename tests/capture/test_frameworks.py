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


KEEPS_ITS_ITERATOR = """
import torch
from torch.utils.data import DataLoader, TensorDataset

class Endless(DataLoader):
    made = None

    def __iter__(self):
        self.made = self.made or self._get_iterator()
        for _ in range(len(self)):
            yield next(self.made)

def fit(steps):
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data, others = TensorDataset(torch.randn(400, 4)), DataLoader(TensorDataset(torch.randn(6, 4)), 3)
    for step, (x,) in enumerate(Endless(data, 10)):
        net(x).sum().backward()
        if step == 1:
            list(others)
        optimizer.step()
"""


def test_the_loader_that_a_framework_makes_is_known_with_the_framework(tmp_path: Path) -> None:
    """Also where its iterator is made without the loader's ``__iter__``, and another loader was iterated since."""
    (tmp_path / "skorch.py").write_text(KEEPS_ITS_ITERATOR)
    (tmp_path / "train.py").write_text("from skorch import fit\nfit(40)\n")
    run = record(tmp_path / "run", [str(tmp_path / "train.py")], cwd=tmp_path)
    assert run.code == 0, run.err
    told = run.told(0)
    settings = told["settings"]
    assert (settings["batch_size"], settings["batches"], settings["loader_of"]) == (10, 40, "skorch")
    assert told["packages"]["own"] == {"skorch": str(tmp_path)}
    assert told["faults"] == []
