"""The example scripts, run under uncork."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("slow", "fast")
TIMEOUT_S = 300
SLEEPING = ("bursts", "slow_getitem", "uneven_shards")
"""Examples whose loaders only wait, and which leave half of the cores free while they do."""


def uncork(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Return a finished run of the command, which succeeded."""
    command = [sys.executable, "-m", "uncork", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return done


def reports(example: str, folder: Path, *launcher: str, together: bool) -> dict[str, dict[str, Any]]:
    """Return the reports on both scripts of an example by name, recorded into a folder.

    Args:
        example: Its folder's name.
        folder: Where the runs go.
        launcher: What stands before the script.
        together: Whether the scripts may run at the same time, if each keeps one core busy: what else the machine does
            then falls upon both.
    """
    folder.mkdir(exist_ok=True)

    def told(name: str) -> dict[str, Any]:
        out = folder / f"{name}.json"
        uncork("run", "-q", "-o", folder / name, "--json", out, *launcher, EXAMPLES / example / f"{name}.py")
        return json.loads(out.read_text("utf-8"))

    at_once = 2 if together and not launcher and keeps_one_core_busy(example) else 1
    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(NAMES, pool.map(told, NAMES), strict=True))


def keeps_one_core_busy(example: str) -> bool:
    """Return whether both scripts of an example ask for one thread, and for no worker or such that sleep."""
    slow, fast = ((EXAMPLES / example / f"{name}.py").read_text("utf-8") for name in NAMES)
    return "set_num_threads(1)" in slow and ("num_workers" not in slow + fast or example in SLEEPING)


def step_ratio(folder: Path) -> float:
    """Return the fix's step time over the slow script's, each timed without a profiler, as compare says it."""
    done = uncork("compare", folder / "slow", folder / "fast", "--json", "-", "--lang", "en")
    step = json.loads(done.stdout)["step"]
    return float(step["after_ns"] / step["before_ns"])
