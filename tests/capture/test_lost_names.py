"""Names that torch's traces write as "unknown": those in Chinese, say."""

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.capture.runs import record
from uncork.capture.lost_names import LostNames, put_back
from uncork.capture.packing import pack
from uncork.capture.versions import is_lost

pytestmark = pytest.mark.torch
EVENT = """  {
    "ph": "X", "cat": "python_function", "name": "%s", "pid": 7, "tid": 7,
    "ts": %s, "dur": %s
    ,
    "args": {"Python id": 1}
  }"""
TRACE = '{"traceEvents": [\n%s\n],\n"baseTimeNanoseconds": 5000000\n}'
PROGRAM = """
import torch
from torch.profiler import record_function

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), 0.1)

def 训练一步():
    with record_function("前向"):
        loss = model(torch.ones(4, 8)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()

for _ in range(80):
    训练一步()
"""


@pytest.mark.parametrize(
    ("name", "lost"), [("main.py(3): step", False), ("前向", True), ("späť", True), ("a\tb", True), ("", False)]
)
def test_only_printable_ascii_is_written_by_torch(name: str, *, lost: bool) -> None:
    """Any other sign makes the whole name "unknown"."""
    assert is_lost(name) == lost


def test_a_name_that_torch_kept_no_more_than_the_place_of_is_left_out(tmp_path: Path) -> None:
    """The code of an imported module is gone by the end of a trace, and its name's bytes are another's by then."""
    events = [
        SimpleNamespace(name=lambda one=name: one.decode(), start_ns=lambda: 3, duration_ns=lambda: 2)
        for name in ("前向".encode(), b"torch/onnx/ops.py(22): p\xe2'\xb7", b"aten::mm")
    ]
    (tmp_path / "trace.json").write_text(TRACE % EVENT % ("unknown", 3, 2))
    LostNames().write(SimpleNamespace(events=lambda: events), tmp_path / "trace.json", tmp_path / "names.json")
    assert json.loads((tmp_path / "names.json").read_text("utf-8")) == {"前向": [[3, 2]]}


def test_names_are_put_back_by_begin_and_length(tmp_path: Path) -> None:
    """Times are in microseconds from the file's base: 5 ms + 12.345 us; a name that nothing is known of stays."""
    events = [
        ("unknown", "12.345", "6.007"),
        ("unknown", "12.345", "6.008"),
        ("aten::mm", "13", "2"),
        ("unknown", "20", "3"),
    ]
    text = TRACE % ",\n".join(EVENT % one for one in events)
    names = {'训"练.py(3): 步': [[5012345, 6007]], "前向": [[5020000, 3000]]}
    home = tmp_path / "rank0"
    home.mkdir()
    (home / "deep.trace.json").write_text(text, encoding="utf-8")
    (home / "deep.names.json").write_text(json.dumps(names), encoding="utf-8")
    pack(tmp_path)
    packed = json.loads(gzip.decompress((home / "deep.trace.json.gz").read_bytes()))
    assert [one["name"] for one in packed["traceEvents"]] == ['训"练.py(3): 步', "unknown", "aten::mm", "前向"]
    assert [path.name for path in home.iterdir()] == ["deep.trace.json.gz"]
    assert put_back(text.encode(), {}) == text.encode()


def test_a_program_in_chinese_keeps_its_names(tmp_path: Path) -> None:
    """File, function and region are there, in the deep window and in the longer of the light ones."""
    script = tmp_path / "训练.py"
    script.write_text(PROGRAM, encoding="utf-8")
    run = record(tmp_path / "run", [str(script)], cwd=tmp_path)
    assert (run.code, run.err) == (0, "")
    deep, light = (
        {event["name"] for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if "cat" in event}
        for path in (run.folder / "rank0" / f"{name}.trace.json.gz" for name in ("deep", "light"))
    )
    has_stacks = "stacks-lost-calls" not in run.told(0)["notes"]  # Python 3.12.0 to 3.12.4 have none
    assert any("训练.py(" in name and name.endswith("): 训练一步") for name in deep) == has_stacks
    assert "前向" in deep & light
    assert not {"unknown"} & (deep | light)
