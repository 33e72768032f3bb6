"""What ``make check`` holds: the order of the modules, the links, and that the checks are all in it."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_data_flow_one_way():
    """Every contract of import-linter is kept: layers, rules apart, torch only in capture."""
    probe = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_links_lead_somewhere():
    """No page of the repository links to one that is not there."""
    assert list(runpy.run_path(str(ROOT / "docs" / "check_links.py"))["broken"]()) == []


@pytest.mark.parametrize("tool", ["ruff format --check", "ruff check", "mypy", "lint-imports", "check_links"])
def test_make_check_runs_every_tool(tool: str):
    """A check that nobody runs holds nothing."""
    lines = (ROOT / "Makefile").read_text("utf-8").split("\ncheck:")[1].split("\n\n")[0]
    assert tool in lines
