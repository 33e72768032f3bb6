"""Reports in notebooks and consoles."""

import gzip
import json
import re
import sys
from types import SimpleNamespace

import pytest

import uncork
from uncork import readers
from uncork.capture.cells import cells
from uncork.render.comparison import render_comparison
from uncork.testing import sketch, write_traces

SKETCH = """
steps 8 x 10ms
  main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main 6ms..6.9ms x4 every 1ms aten::mm
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Return the trace of a job that waits 6 of 10 ms for data."""
    (path,) = write_traces(SKETCH, tmp_path_factory.mktemp("trace"))
    return path


def test_a_console_shows_text_and_a_notebook_a_framed_page(trace):
    """The page is escaped into a frame that may run scripts but not reach the notebook."""
    shown = uncork.analyze(trace, lang="en")
    assert "DATA LOADING" in repr(shown)
    bundle = shown._repr_mimebundle_()
    assert bundle["text/plain"] == repr(shown)
    assert bundle["text/html"].startswith("<iframe ")
    assert 'sandbox="allow-scripts allow-downloads"' in bundle["text/html"]
    assert "&lt;!doctype html" in bundle["text/html"].lower()


def test_saving_chooses_the_form_by_the_suffix(trace, tmp_path):
    """JSON, Markdown and CSV; any other suffix is refused with the list."""
    shown = uncork.analyze(trace, lang="en")
    assert json.loads(shown.save(tmp_path / "a.json").read_text())["verdict"]["bottleneck"] == "data_loading"
    assert shown.json()["schema"] == 1
    assert shown.save(tmp_path / "a.md").read_text().startswith("### data loading")
    assert shown.save(tmp_path / "a.csv").read_text().startswith("table,name")
    with pytest.raises(ValueError, match=r"\.html, \.json, \.md or \.csv"):
        shown.save(tmp_path / "a.doc")


def test_comparing_from_python(trace):
    """A recording compared with itself has not changed."""
    assert uncork.analyze(trace).since(uncork.analyze(trace)).step_change_share == 0


@pytest.mark.parametrize(("lang", "says"), [("en", "nothing changed"), ("zh", "没有变化")])
def test_a_comparison_shows_itself(trace, lang, says):
    """As text, as Markdown and as a framed page, in the language of the later report."""
    compared = uncork.analyze(trace, lang=lang).since(uncork.analyze(trace))
    bundle = compared._repr_mimebundle_()
    assert str(compared) == repr(compared) == bundle["text/plain"] == render_comparison(compared, lang)
    assert says in str(compared)
    assert bundle["text/markdown"].startswith("### ")
    assert says in bundle["text/markdown"]
    assert bundle["text/html"].startswith("<iframe ")
    assert says in bundle["text/html"]


@pytest.mark.torch
def test_the_cell_magic_records_a_cell(tmp_path):
    """``%%uncork`` runs the cell in the user's namespace and returns a report of the run."""
    pytest.importorskip("torch")
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell.instance()
    uncork.load_ipython_extension(shell)
    cell = """
import torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.randn(256, 64)).square().mean().backward()
    optimizer.step()
made = 1
"""
    shown = shell.run_cell_magic("uncork", str(tmp_path / "run"), cell)
    assert shell.user_ns["made"] == 1
    assert shown.json()["run"]["steps_seen"] == 40
    assert json.loads((tmp_path / "run" / "rank0" / "recording.json").read_text())["cells"]


@pytest.mark.torch
def test_a_cell_that_makes_no_step_is_told_so_in_a_line(tmp_path, capsys):
    """It ran, so the notebook goes on; what is missing is said as on the command line, without a traceback."""
    pytest.importorskip("torch")
    ran, magics = [], {}
    shell = SimpleNamespace(
        register_magic_function=lambda function, **told: magics.update({told["magic_name"]: function}),
        run_cell=lambda cell: ran.append(cell) or SimpleNamespace(error_before_exec=None, error_in_exec=None),
    )
    uncork.load_ipython_extension(shell)
    assert magics["uncork"](str(tmp_path / "run"), "x = 1") is None
    assert ran == ["x = 1"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("uncork: ")
    assert "uncork.step()" in line


@pytest.mark.torch
@pytest.mark.parametrize(("cell", "error"), [("gone = 1\nraise KeyError('mine')", KeyError), ("x = = 1", SyntaxError)])
def test_an_error_of_a_cell_is_shown_once(tmp_path, capsys, cell, error):
    """The cell around it fails with the same error, and shows where; of one in its steps no frame of ours is shown."""
    pytest.importorskip("torch")
    shell_module = pytest.importorskip("IPython.core.interactiveshell")
    shell = shell_module.InteractiveShell.instance()
    uncork.load_ipython_extension(shell)
    ran = shell.run_cell(f"%%uncork {tmp_path / 'run'}\n{cell}")
    assert isinstance(ran.error_in_exec, error)
    said = re.sub(r"\x1b\[[0-9;]*m", "", "".join(capsys.readouterr()))
    assert said.count("Traceback (most recent call last)") == 1
    assert said.count(f"{error.__name__}: ") == 1
    assert ("notebook.py" in said) == (error is SyntaxError)
    assert "_showtraceback" not in vars(shell)


KERNEL = "/tmp/ipykernel_123/456.py"  # noqa: S108 - a name only
IN_A_CELL = f"""
with stacks
steps 4 x 10ms
  main python 0ms..10ms {KERNEL}(6): step
  main 1ms..1.01ms x300 every 0.03ms aten::add
"""


def test_places_in_a_notebook_are_cells(tmp_path):
    """Frames, cProfile's functions and sampled lines name the cell; other files keep their names."""
    (made,) = sketch(IN_A_CELL)
    (trace,) = write_traces(IN_A_CELL, tmp_path)
    home = tmp_path / "run" / "rank0"
    home.mkdir(parents=True)
    (tmp_path / "run" / "recording.json").write_text("{}")
    (home / "deep.trace.json.gz").write_bytes(gzip.compress(trace.read_bytes()))
    told = {"cells": {KERNEL: 2, "other.py": "x", "": 7}}
    (home / "recording.json").write_text(json.dumps(told))
    (home / "stacks.json").write_text(
        json.dumps(
            [{"where": "main", "file": file, "line": 6, "function": "step", "count": 9} for file in (KERNEL, "a.py")]
        )
    )
    sites = [[KERNEL, 7, "step"], ["a.py", 1, "f"]]
    (home / "moments.json").write_text(json.dumps({"sites": sites, "rows": [[1, 0], [2, 1]]}))
    (read,) = readers.read(tmp_path / "run")
    assert [one.file for one in read.stacks] == ["In [2]", "a.py"]
    assert read.deep.moments.sites == (("In [2]", 7, "step"), ("a.py", 1, "f"))
    texts = [read.deep.events.strings.text(index) for index in range(len(read.deep.events.strings))]
    before = [made.events.strings.text(index) for index in range(len(made.events.strings))]
    assert "In [2](6): step" in texts
    assert sorted(texts) == sorted(text.replace(KERNEL, "In [2]") for text in before)


def test_cells_are_known_by_the_names_that_ipython_gives_them(monkeypatch):
    """IPython's compiler keeps file → number; where there is none, or it is something else, nothing is known."""
    compiler = pytest.importorskip("IPython.core.compilerop").CachingCompiler()
    name = compiler.cache("x = 1", 3)
    for shell, known in (
        (SimpleNamespace(compile=compiler), {name: 3}),
        (SimpleNamespace(compile=SimpleNamespace(_filename_map=[1])), {}),
        (SimpleNamespace(), {}),
        (None, {}),
    ):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert cells() == known
    monkeypatch.delitem(sys.modules, "IPython")
    assert cells() == {}


def test_in_jupyter_the_report_is_one_output(trace, monkeypatch):
    """Where rich would show each line as an output of its own, the text is text all the same."""
    shown = uncork.analyze(trace, lang="en")
    plain_text, compared = repr(shown), render_comparison(shown.since(shown), "en")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "DATA LOADING" in repr(shown)
    assert repr(shown) == plain_text
    assert render_comparison(shown.since(shown), "en") == compared
