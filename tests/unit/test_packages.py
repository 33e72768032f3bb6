"""Whose packages are whose names mislead: what a recorder tells of them, and places that are named by it."""

import gzip
import json
import sys
import sysconfig
import types
from pathlib import Path
from unittest.mock import Mock

import pytest

from uncork import readers
from uncork.capture.packages import packages
from uncork.frames import is_users, is_users_frame
from uncork.testing import sketch, write_traces

SITE = "/venv/lib/python3.11/site-packages"
MAIN = {"__main__": "/home/me/project/train.py"}


def _modules(files: dict[str, str | None], main: dict[str, object] | None = None) -> dict[str, object]:
    """Return modules by name with the files they say they come from."""
    made = {}
    for name, file in {**MAIN, **files}.items():
        made[name] = types.ModuleType(name)
        made[name].__dict__["__file__"] = file
    vars(made["__main__"]).update(main or {})
    return made


def test_installed_packages_that_look_like_the_users_are_told():
    """A library nobody has heard of is one by where it lies; known ones, Python's and the user's own need no word."""
    files = {
        "strangelib": f"{SITE}/strangelib/__init__.py",
        "strangelib.data": f"{SITE}/strangelib/data.py",
        "onefile": f"{SITE}/onefile.py",
        "transformers": f"{SITE}/transformers/__init__.py",
        "json": "/usr/lib/python3.11/json/__init__.py",
        "models": "/home/me/project/models/__init__.py",
        "built_in": None,
    }
    assert packages(_modules(files)) == {"installed": ["onefile", "strangelib"], "own": {}}


def test_a_folder_that_is_gone_hides_no_package(monkeypatch):
    """The program removed the folder that it was started in: what it imported is told all the same."""
    monkeypatch.setattr("os.getcwd", Mock(side_effect=FileNotFoundError))
    assert packages(_modules({"strangelib": f"{SITE}/strangelib/__init__.py"})) == {
        "installed": ["strangelib"],
        "own": {},
    }


def test_folders_of_the_user_that_are_called_like_a_library_are_theirs():
    """``datasets/coco.py`` beside the program is no part of Hugging Face's package; what lies elsewhere stays one."""
    files = {
        "datasets": "/home/me/project/datasets/__init__.py",
        "profile": "/home/me/project/profile.py",
        "av": "/opt/build/av/__init__.py",
        "torch": "/home/me/project/torch/__init__.py",
    }
    told = packages(_modules(files))
    assert told == {"installed": [], "own": {"datasets": "/home/me/project", "profile": "/home/me/project"}}


def test_a_folder_without_an_init_file_is_a_package_too():
    """Python imports such a folder as a namespace, which has no file."""
    modules = _modules({"datasets": None})
    modules["datasets"].__dict__["__path__"] = ["/home/me/project/datasets"]
    assert packages(modules)["own"] == {"datasets": "/home/me/project"}


@pytest.mark.parametrize("how", ["-m", "command"])
def test_a_package_that_was_started_by_name_is_the_users(how: str):
    """Who runs ``python -m strangelib.train``, or its installed command, works on it."""
    files = {"strangelib": f"{SITE}/strangelib/__init__.py"}
    if how == "-m":
        main = {"__spec__": types.SimpleNamespace(name="strangelib.train")}
    else:
        main = {"__file__": f"{sysconfig.get_path('scripts')}/strange-train", "main": _called("strangelib.cli")}
    assert packages(_modules(files, main))["installed"] == []
    assert packages(_modules(files))["installed"] == ["strangelib"]


def _called(module: str) -> types.FunctionType:
    """Return a function that says it is a module's."""

    def main() -> None:
        return None

    main.__module__ = module
    return main


def test_a_module_that_is_imported_only_when_it_is_asked_stays_unasked():
    """Lazy modules run their import at the first attribute that is read; other things may stand there, too."""

    class Lazy(types.ModuleType):
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(name)

    modules = {**_modules({}), "lazy": Lazy("lazy"), "odd": 7, "none": None}
    assert packages(modules) == {"installed": [], "own": {}}
    assert packages(sys.modules)["own"] == {}


STEPS = """
with stacks
steps 4 x 10ms
  main python 0ms..10ms train.py(6): main
  main python 1ms..5ms strangelib/data.py(3): item
  main python 6ms..7ms datasets/coco.py(9): item
  main python 7ms..8ms strangely/own.py(1): f
  main 1ms..2ms aten::add
"""


def _read(tmp_path: Path, told: object) -> list[str]:
    """Return the texts of a run's trace whose recorder told something of packages."""
    (trace,) = write_traces(STEPS, tmp_path)
    home = tmp_path / "run" / "rank0"
    home.mkdir(parents=True)
    (tmp_path / "run" / "recording.json").write_text("{}")
    for name in ("deep", "light"):
        (home / f"{name}.trace.json.gz").write_bytes(gzip.compress(trace.read_bytes()))
    (home / "recording.json").write_text(json.dumps({"packages": told}))
    (run,) = readers.read(tmp_path / "run")
    assert run.deep is not None
    tables = [run.events, run.deep.events]
    assert all(table is not None for table in tables)
    (texts, others) = [sorted(one.strings.text(index) for index in range(len(one.strings))) for one in tables]
    assert texts == others
    return texts


def test_frames_lie_where_the_recorder_saw_their_packages(tmp_path: Path):
    """Only whole first parts of a path are packages; everything else keeps its name."""
    (made,) = sketch(STEPS)
    before = sorted(made.events.strings.text(index) for index in range(len(made.events.strings)))
    told = {"installed": ["strangelib"], "own": {"datasets": "/home/me"}}
    texts = _read(tmp_path, told)
    assert "site-packages/strangelib/data.py(3): item" in texts
    assert "/home/me/datasets/coco.py(9): item" in texts
    undone = [text.replace("site-packages/", "").replace("/home/me/", "") for text in texts]
    assert sorted(undone) == before
    assert [name for name in texts if ".py(" in name and is_users_frame(name)] == [
        "/home/me/datasets/coco.py(9): item",
        "strangely/own.py(1): f",
        "train.py(6): main",
    ]


@pytest.mark.parametrize(
    "told",
    [None, 3, [], {"installed": 5, "own": []}, {"installed": [1, None, "", ["a"]], "own": {"": "/", "datasets": 4}}],
)
def test_what_is_not_understood_changes_nothing(tmp_path: Path, told: object):
    """A recording may have been written by anyone."""
    texts = _read(tmp_path, told)
    assert "strangelib/data.py(3): item" in texts
    assert "datasets/coco.py(9): item" in texts


def test_a_whole_path_is_the_users_whatever_its_folders_are_called():
    """Libraries' whole paths have ``site-packages`` in them."""
    assert is_users("/datasets/train.py")
    assert not is_users("datasets/train.py")
    assert not is_users(f"{SITE}/strangelib/data.py")
