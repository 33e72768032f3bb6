"""The example scripts, run under uncork."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
TIMEOUT_S = 300


def uncork(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Return a finished run of the command, which succeeded."""
    command = [sys.executable, "-m", "uncork", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done


def reports(example: str, folder: Path, *launcher: str) -> dict[str, dict[str, Any]]:
    """Return the reports on both scripts of an example by name, recorded into a folder.

    Args:
        example: Its folder's name.
        folder: Where the runs go.
        launcher: What stands before the script.
    """
    folder.mkdir(exist_ok=True)
    told = {}
    for name in ("slow", "fast"):
        script, out = EXAMPLES / example / f"{name}.py", folder / f"{name}.json"
        uncork("run", "-q", "-o", folder / name, "--json", out, *launcher, script)
        told[name] = json.loads(out.read_text("utf-8"))
    return told


def step_ratio(folder: Path) -> float:
    """Return the fix's step time over the slow script's, each timed without a profiler, as compare says it."""
    done = uncork("compare", folder / "slow", folder / "fast", "--json", "-", "--lang", "en")
    step = json.loads(done.stdout)["step"]
    return float(step["after_ns"] / step["before_ns"])
