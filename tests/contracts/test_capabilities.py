"""Every requirement keeps a row in the table of capabilities and a test that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ROW = re.compile(r"^\| (R\d\.\d+|P\d) \|.*`(\S+\.py)::(\w+)` \|$", re.MULTILINE)
TEST = re.compile(r"`([^`\s]+\.py)::(\w+)`")
COUNTS = {"R1": 8, "R2": 10, "R3": 6, "R4": 3, "R5": 6, "R6": 2, "R7": 3, "R8": 4}


def rows() -> list[tuple[str, str, str]]:
    """Return (id, file, test) of each row."""
    return ROW.findall((ROOT / "docs" / "capabilities.md").read_text("utf-8"))


def test_every_requirement_has_its_row():
    """R1.1 to R8.4 and the four pitfalls, each once."""
    wanted = {f"{part}.{number}" for part, count in COUNTS.items() for number in range(1, count + 1)}
    wanted |= {f"P{number}" for number in range(1, 5)}
    found = [name for name, _, _ in rows()]
    assert sorted(found) == sorted(wanted)


def test_every_named_test_is_there():
    """A renamed or deleted test shows here, of several in a row each."""
    lost = [
        f"{file}::{test}"
        for file, test in TEST.findall((ROOT / "docs" / "capabilities.md").read_text("utf-8"))
        if f"def {test}("
        not in ((ROOT / "tests" / file).read_text("utf-8") if (ROOT / "tests" / file).is_file() else "")
    ]
    assert lost == []


def test_reading_rules_and_pitfalls_are_in_the_names_of_their_tests():
    """R3, R4.3, R5 and the pitfalls: who looks for an id among the tests finds it."""
    wanted = [row for row in rows() if row[0].startswith(("R3.", "R4.3", "R5.", "P"))]
    assert len(wanted) == 6 + 1 + 6 + 4
    for name, _, test in wanted:
        said = f"pitfall_{name[1:]}" if name.startswith("P") else name.lower().replace(".", "_")
        assert test.startswith(f"test_{said}_"), (name, test)
