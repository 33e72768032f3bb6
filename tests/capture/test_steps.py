"""The steps of a program are found without a mark in it: the loops of the capture study."""

import json
from pathlib import Path

import pytest

from tests.capture import scenarios_list
from tests.capture.runs import record

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    """Run every scenario, all in one process."""
    run = record(
        tmp_path_factory.mktemp("steps") / "run", [str(HERE / "scenarios.py")], cwd=HERE.parent.parent, skip=10**9
    )
    assert run.code == 0, run.err
    return json.loads(run.out)


@pytest.mark.parametrize(("name", "rule"), scenarios_list.RULES.items())
def test_steps_are_exact(seen: dict[str, list], name: str, rule: str) -> None:
    """The recorder counts exactly the steps that the loop made, by the rule that fits it."""
    expected, got, by, faults = seen[name]
    assert (got, by, faults) == (expected, rule, [])
