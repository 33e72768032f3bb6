"""What others may rely on: public names, the speed and the words of the command line."""

import importlib
import json
import subprocess
import sys
import types
from pathlib import Path

import pytest

import uncork

PUBLIC_MODULES = ("uncork", "uncork.testing")
HELP_CPU_S = 0.3
PROBE = """
import contextlib, io, json, resource, sys
from uncork.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main(["--help"])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"cpu_s": used.ru_utime + used.ru_stime, "modules": sorted(sys.modules)}))
"""


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_all_lists_what_is_public(name: str):
    """`__all__` is sorted and holds every public name that is not a submodule."""
    module = importlib.import_module(name)
    names = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(module.__all__) == sorted(names | ({"__version__"} & set(module.__all__)))


@pytest.fixture(scope="module")
def help_run() -> dict[str, object]:
    """Return what a fresh interpreter needed to print the help; the quickest of three, since machines are shared."""
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", PROBE], capture_output=True, check=True, text=True).stdout)
        for _ in range(3)
    ]
    return min(runs, key=lambda run: run["cpu_s"])


def test_help_is_quick(help_run: dict[str, object]):
    """Under 0.3 s of CPU time, interpreter included."""
    assert help_run["cpu_s"] < HELP_CPU_S


@pytest.mark.parametrize("module", ["torch", "numpy", "rich", "msgspec", "dask"])
def test_help_loads_nothing_heavy(help_run: dict[str, object], module: str):
    """Typing --help does not wait for libraries that it does not use."""
    assert module not in help_run["modules"]


def test_analysing_does_not_need_torch():
    """Importing everything but the recorder leaves torch alone (law 8)."""
    probe = "import sys, uncork.pipeline, uncork.testing, uncork.cli.analyze; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout == "False\n"


def test_the_version_is_the_changelogs():
    """The newest heading of the changelog is this version, or says that it is unreleased."""
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
    newest = next(line for line in text.splitlines() if line.startswith("## "))
    assert newest.split()[1].strip("[]") in (uncork.__version__, "Unreleased")
