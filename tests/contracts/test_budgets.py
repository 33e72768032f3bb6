"""Law 10: files, functions and rules stay small enough to be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "uncork"
FILE_LINES, FUNCTION_LINES, RULE_LINES = 400, 50, 80
FORBIDDEN_WORDS = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}


def python_files(*folders: str) -> list[Path]:
    """Return the Python files below some folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each function of a file and its length, decorators and docstring counted."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield f"{path.relative_to(ROOT)}:{first} {node.name}", (node.end_lineno or first) - first + 1


def test_no_file_is_longer_than_its_budget():
    """400 lines for any file of the package, its tests, examples and benchmarks."""
    found = {
        str(path.relative_to(ROOT)): lines
        for path in python_files("src", "tests", "examples", "bench", "docs")
        if (lines := len(path.read_text("utf-8").splitlines())) > FILE_LINES
    }
    assert not found


def test_no_function_is_longer_than_its_budget():
    """50 lines for any function of the package."""
    found = {name: lines for path in python_files("src") for name, lines in functions(path) if lines > FUNCTION_LINES}
    assert not found


def test_no_rule_is_longer_than_its_budget():
    """80 lines for a rule: one that needs more wants a new measurement."""
    found = {
        path.name: lines
        for path in (SOURCE / "rules").glob("*/*.py")
        if (lines := len(path.read_text("utf-8").splitlines())) > RULE_LINES
    }
    assert not found


def test_modules_are_named_after_what_they_hold():
    """No module called utils, helpers, manager, base or common, and none that repeats the package's name."""
    found = [
        str(path.relative_to(ROOT))
        for path in python_files("src")
        if set(path.stem.split("_")) & FORBIDDEN_WORDS or "uncork" in path.stem
    ]
    assert not found


@pytest.mark.parametrize("path", python_files("tests"), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_says_what_it_shows(path: Path):
    """Each test and each test file has a docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    silent = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert not silent
    assert ast.get_docstring(tree) or not tree.body
