"""A fault of ours never reaches the program: each part is broken in turn, and the losses stay equal to the bit."""

from pathlib import Path

import pytest

from tests.capture.runs import plain, record
from tests.capture.sabotage_parts import PARTS

pytestmark = pytest.mark.torch
HERE = Path(__file__).parent
BROKEN = f"""import sys
def fail(*_, **__):
    raise RuntimeError("injected")
if "uncork.capture" in sys.modules:
    from uncork.capture import hooks
    {{}}
sys.path.insert(0, {str(HERE)!r})
from training import train
train(3)
"""


@pytest.fixture(scope="module")
def alone() -> str:
    """Return what the program prints without us."""
    return plain([str(HERE / "sabotage.py"), "none"], cwd=HERE).stdout


@pytest.fixture(scope="module")
def three_steps(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what the program that breaks the recorder prints without one: there is nothing to break."""
    program = tmp_path_factory.mktemp("alone") / "broken.py"
    program.write_text(BROKEN.format("fail()"))
    return plain([str(program)], cwd=program.parent).stdout


@pytest.mark.parametrize("part", PARTS)
def test_program_does_not_notice(part: str, alone: str, tmp_path: Path) -> None:
    """Output, error output and exit code are those of a plain run; where it can, the recording tells of the fault."""
    watched = record(tmp_path / "run", [str(HERE / "sabotage.py"), part], cwd=HERE)
    assert (watched.out, watched.err, watched.code) == (alone, "", 0)
    assert alone.count("\n") == 21
    if part not in ("files", "sampler", "finish", "settings", "spans"):
        told = watched.told(0)
        assert "recorder-fault" in told["notes"]
        assert f"injected fault in {part}" in told["faults"][0]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("hooks.install = fail", "uncork: The recorder met a fault of its own"),
        ("hooks._hook_profilers = fail", "(broken.py:3, RuntimeError: injected)"),
        ("sys.modules['uncork.capture.recorder'] = None", "ModuleNotFoundError: import of uncork.capture.recorder"),
    ],
)
def test_a_recorder_that_cannot_begin_says_so(broken: str, said: str, three_steps: str, tmp_path: Path) -> None:
    """Where the hooks cannot be set, or only half of them, the program runs on; the fault and its place are told."""
    program = tmp_path / "broken.py"
    program.write_text(BROKEN.format(broken))
    watched = plain(["-m", "uncork", "run", "-o", str(tmp_path / "run"), str(program)], cwd=tmp_path)
    assert (watched.stdout, watched.returncode) == (three_steps, 0)
    assert three_steps.count("\n") == 4
    assert said in watched.stderr
    assert "never imported" not in watched.stderr
