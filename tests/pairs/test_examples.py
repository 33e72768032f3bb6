"""Real runs of the examples: the slow script has the bottleneck it was written for, and its fix is faster."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TIMEOUT_S = 300

pytestmark = [pytest.mark.slow, pytest.mark.torch]


@dataclass(frozen=True)
class Pair:
    """What a pair of scripts was written to show.

    Args:
        bottleneck: Verdict on the slow script.
        faster: The fix's step takes at most this share of the slow one's.
        place: Part of a finding's location on the slow script (file, function or module), empty where none is due.
        launcher: What stands before the script.
    """

    bottleneck: str
    faster: float
    place: str = ""
    launcher: tuple[str, ...] = ()


# How much faster: half of what was measured on two idle cores, so that a busy machine does not decide.
PAIRS = {
    "slow_getitem": Pair("data_loading", 0.8, "fetch"),
    "conv_heavy": Pair("compute", 0.8, "mixer"),
    "growing_cat": Pair("memory", 0.8),
    "tiny_ops": Pair("framework", 0.5, "simulate"),
    "dense_gradients": Pair(
        "communication", 0.5, launcher=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ),
}


def uncork(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Return a finished run of the command."""
    command = [sys.executable, "-m", "uncork", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.fixture(scope="module", params=list(PAIRS))
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, dict[str, Any], Path]:
    """Return a pair, the reports on both scripts, and the folder of their runs."""
    folder, pair = tmp_path_factory.mktemp(request.param), PAIRS[request.param]
    reports = {}
    for name in ("slow", "fast"):
        script = EXAMPLES / request.param / f"{name}.py"
        done = uncork("run", "-q", "-o", folder / name, "--json", folder / f"{name}.json", *pair.launcher, script)
        assert done.returncode == 0, done.stderr
        reports[name] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return pair, reports, folder


def test_the_slow_script_has_the_bottleneck_it_was_written_for(ran: tuple[Pair, dict[str, Any], Path]):
    """The verdict names the class."""
    pair, reports, _ = ran
    assert reports["slow"]["verdict"]["bottleneck"] == pair.bottleneck


def test_the_finding_names_the_place(ran: tuple[Pair, dict[str, Any], Path]):
    """A finding of the verdict's class points at the function or layer that was made slow."""
    pair, reports, _ = ran
    if not pair.place:
        pytest.skip("this pair shows a class, not a place")
    found = [finding for finding in reports["slow"]["findings"] if finding["class"] == pair.bottleneck]
    assert any(pair.place in str(value) for finding in found for value in finding["location"].values()), found


def test_the_fix_is_faster_and_compare_says_so(ran: tuple[Pair, dict[str, Any], Path]):
    """The step, timed without a profiler, is shorter by half of what it was when the pair was written."""
    pair, _, folder = ran
    done = uncork("compare", folder / "slow", folder / "fast", "--json", "-", "--lang", "en")
    assert done.returncode == 0, done.stderr
    step = json.loads(done.stdout)["step"]
    assert step["after_ns"] < step["before_ns"] * pair.faster
