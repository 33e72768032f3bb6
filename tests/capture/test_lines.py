"""Lines: what the recorder sees while it records stacks tells from which line an operator was called."""

from pathlib import Path

from tests.capture.runs import record
from uncork.calltree import CallTree
from uncork.readers import read
from uncork.timeline import Timeline

PROGRAM = """
import torch
torch.set_num_threads(1)
weight = torch.nn.Parameter(torch.randn(600, 600))
optimizer = torch.optim.SGD([weight], lr=1e-3)
def step(x):
    y = x @ weight
    order = torch.argsort(x.detach().flatten())
    return y.sum() + order[0]
for _ in range(80):
    optimizer.zero_grad()
    step(torch.randn(600, 600)).backward()
    optimizer.step()
"""


def test_an_operators_line_is_the_one_that_ran(tmp_path: Path) -> None:
    """The sort is written on line 8, in the function that begins on line 6."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    run = record(tmp_path / "run", [str(script)], cwd=tmp_path)
    assert run.told(0)["faults"] == []
    (recording,) = read(tmp_path / "run")
    assert recording.deep is not None
    tree = CallTree(Timeline(recording.deep))
    names = tree.timeline.events.names(tree.host.row)
    places = {
        name: tree.places[tree.place[at]]
        for at, name in enumerate(names)
        if name == "aten::argsort" and tree.place[at] >= 0 and tree.places[tree.place[at]].exact
    }
    assert places["aten::argsort"].line == 8
    assert places["aten::argsort"].function == "step"
