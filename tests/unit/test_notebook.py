"""Reports in notebooks and consoles."""

import json

import pytest

import uncork
from uncork.render.comparison import render_comparison
from uncork.testing import write_traces

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


def test_in_jupyter_the_report_is_one_output(trace, monkeypatch):
    """Where rich would show each line as an output of its own, the text is text all the same."""
    shown = uncork.analyze(trace, lang="en")
    plain_text, compared = repr(shown), render_comparison(shown.since(shown), "en")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "DATA LOADING" in repr(shown)
    assert repr(shown) == plain_text
    assert render_comparison(shown.since(shown), "en") == compared
