"""What real PyTorch writes when it checks for NaN, casts, updates and collects: the signatures that rules go by."""

from collections.abc import Callable
from pathlib import Path

import pytest

from uncork import readers
from uncork.measure import Measurement, Rank
from uncork.measure.anomaly_checks import AnomalyChecks
from uncork.measure.casts import Casts
from uncork.measure.compiled import Compiled
from uncork.measure.loader import LoaderWait
from uncork.measure.optimizer_steps import OptimizerSteps
from uncork.testing import sketch

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def recorded(work: Callable[[], object], folder: Path, kind: type[Measurement]) -> Measurement:
    """Return a measurement of some work, recorded by torch's profiler on the CPU."""
    work()
    with torch.autograd.profiler.profile(use_kineto=True) as profile:
        work()
    path = folder / "trace.json"
    profile.export_chrome_trace(str(path))
    (recording,) = readers.read(path)
    return kind.of(Rank(recording))


def model() -> "torch.nn.Module":
    """Return a small network with four parameters."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


@pytest.mark.parametrize("on", [True, False])
def test_anomaly_detection_shows_as_checks_in_the_backward_pass(on: bool, tmp_path: Path):
    """Each gradient is checked while it is on, and none while it is off."""
    net = model()

    def work() -> None:
        with torch.autograd.set_detect_anomaly(on):
            net(torch.ones(4, 16)).sum().backward()

    found = recorded(work, tmp_path, AnomalyChecks)
    assert isinstance(found, AnomalyChecks)
    assert (found.checks > 3) == on
    assert (found.cost_ns > 0) == on


@pytest.mark.parametrize(
    ("arguments", "kind", "tensors"),
    [({}, "for-loop", 4), ({"foreach": True}, "for-loop", 4), ({"fused": True}, "fused", 0)],
)
def test_kinds_of_optimizer_are_told_apart(arguments: dict[str, bool], kind: str, tensors: int, tmp_path: Path):
    """On the CPU lists of tensors are taken apart again, so foreach is a loop there; fused is one operator."""
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), **arguments)
    net(torch.ones(4, 16)).sum().backward()
    found = recorded(optimizer.step, tmp_path, OptimizerSteps)
    assert isinstance(found, OptimizerSteps)
    assert (found.name, found.kind) == ("Adam", kind)
    assert found.tensors >= tensors


@pytest.mark.parametrize("on", [True, False])
def test_autocast_shows_as_casts_inside_operators(on: bool, tmp_path: Path):
    """Two layers cast their weight, bias and input; without autocast nothing does."""
    net = model()

    def work() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
            net(torch.ones(4, 16))

    found = recorded(work, tmp_path, Casts)
    assert isinstance(found, Casts)
    assert (found.count >= 4) == on
    if on:
        assert found.op == "aten::linear"


def test_the_loader_marks_itself(tmp_path: Path):
    """A DataLoader without workers is told from one with them by the name of its iterator."""
    data = torch.utils.data.TensorDataset(torch.ones(64, 16))
    found = recorded(lambda: list(torch.utils.data.DataLoader(data, batch_size=16)), tmp_path, LoaderWait)
    assert isinstance(found, LoaderWait)
    assert (found.iterator, found.starts) == ("single", 1)
    # Four batches, and the call that finds the end.
    assert found.calls == 5


def test_a_region_that_was_left_is_compiled_code_only_where_its_pieces_run():
    """Regions of one broken graph nest: 0.1 ms before the first piece and 5 ms between are not compiled code."""
    nested = """
        with stacks
        steps 4 x 10ms
          main 0ms..9.9ms train.py(30): step
          main op 0ms..9ms Torch-Compiled Region: 0/0
          main op 0.1ms..1ms CompiledFunction
          main 0.2ms..0.9ms aten::mm
          main 1ms..6ms train.py(20): log_value
          main op 6ms..9ms Torch-Compiled Region: 1/0
          main op 6.1ms..9ms CompiledFunction
          main 6.2ms..8.9ms aten::mm
    """
    (recording,) = sketch(nested)
    assert Compiled.of(Rank(recording)).between_ns == 5_100_000
    (unnamed,) = sketch(nested.replace("CompiledFunction", "piece"))
    assert Compiled.of(Rank(unnamed)).between_ns == 0
