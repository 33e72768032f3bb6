"""The tab in TensorBoard, asked as TensorBoard asks it."""

import json
from types import SimpleNamespace

import pytest

from uncork.testing import write_traces

pytest.importorskip("tensorboard")

SKETCH = """
steps 8 x 10ms
  main 0ms..6ms enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  main 6ms..6.9ms x4 every 1ms aten::mm
"""


@pytest.fixture
def plugin(tmp_path):
    """Return the plugin on a log folder with one run in a folder of its own, as the profiler's handler writes it."""
    from uncork.tensorboard import UncorkPlugin

    (tmp_path / "first").mkdir()
    (trace,) = write_traces(SKETCH, tmp_path / "first")
    trace.rename(trace.with_name("worker0.1623143089861.pt.trace.json"))
    return UncorkPlugin(SimpleNamespace(logdir=str(tmp_path)))


def ask(plugin, route, query=""):
    """Return status and body of a route."""
    from werkzeug.test import Client

    answer = Client(plugin.get_plugin_apps()[route]).get(query_string=query)
    return answer.status_code, answer.get_data(as_text=True)


def test_a_log_folder_with_traces_has_the_tab(plugin, tmp_path_factory):
    """Active where traces lie, inactive in an empty folder."""
    assert plugin.is_active()
    empty = type(plugin)(SimpleNamespace(logdir=str(tmp_path_factory.mktemp("empty"))))
    assert not empty.is_active()


def test_the_tab_shows_the_report_of_a_run(plugin):
    """The script lists the runs, and the page is the report."""
    assert "render" in ask(plugin, "/index.js")[1]
    assert json.loads(ask(plugin, "/runs")[1]) == ["first"]
    status, page = ask(plugin, "/page", {"run": "first"})
    assert status == 200
    assert "60 %" in page


@pytest.mark.parametrize("run", ["", "..", "../..", "second", "/etc"])
def test_no_path_leads_out_of_the_log_folder(plugin, run):
    """Only runs that were listed are read."""
    assert ask(plugin, "/page", {"run": run})[0] == 404


def test_tensorboard_finds_the_plugin():
    """The entry point names the class."""
    from importlib.metadata import entry_points

    (found,) = [one for one in entry_points(group="tensorboard_plugins") if one.name == "uncork"]
    assert found.load().plugin_name == "uncork"
