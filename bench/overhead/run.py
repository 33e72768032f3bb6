"""What recording costs: the same program plain, under uncork, under cProfile and under py-spy, in turns, in CPU time.

    python bench/overhead/run.py [--rounds 7] [--steps 200] [--programs tiny conv transformer]

Wall time says little on a shared machine, so the figure is the CPU time of the loop in the program's own process. Each
round runs every way once, every other round in the opposite order; the factor is the median over the rounds of a way's
time on the plain one's of that round, with the least and the most beside it; "plain again" says what a factor is
worth, since it has no recording at all. The programs compute on one thread and are otherwise started as a user starts
them. With OMP_NUM_THREADS=1 set outside, as torchrun sets it, numpy's library makes no threads either, and the first
thread of the process is ours: docs/overhead.md says what that costs. "outside windows" is a recording that waits for a
trigger: every hook is in place and counts steps, no window begins. py-spy is left out where it is not installed.
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
RECORD = (
    "import sys; from pathlib import Path; from uncork.capture import CaptureOptions, record; "
    "record(sys.argv[3:], module=False, into=Path(sys.argv[1]), options=CaptureOptions(arm=sys.argv[2] == 'arm'))"
)


def ways(folder: Path) -> dict[str, list[str]]:
    """Return the commands in front of the program, by name."""
    found = {
        "plain": [sys.executable],
        "plain again": [sys.executable],
        "uncork": [sys.executable, "-c", RECORD, str(folder / "run"), "go"],
        "outside windows": [sys.executable, "-c", RECORD, str(folder / "waiting"), "arm"],
        "cProfile": [sys.executable, "-m", "cProfile", "-o", str(folder / "profile")],
    }
    spy = shutil.which("py-spy")
    if spy:
        found["py-spy"] = [spy, "record", "-r", "100", "-o", str(folder / "spy.svg"), "--", sys.executable]
    return found


def loop_figures(command: list[str]) -> dict[str, float]:
    """Return the CPU and wall seconds of the loop and the peak memory of a run."""
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    line = re.search(r"loop_cpu_s ([\d.]+) loop_s ([\d.]+) rss_kib (\d+)", done.stdout)
    if line is None:
        raise SystemExit(f"no figures from {command}: {done.stderr}")
    return {"cpu_s": float(line[1]), "wall_s": float(line[2]), "rss_mib": int(line[3]) / 1024}


def hooks_us(command: list[str]) -> tuple[float, float, float]:
    """Return what a step's hook, a call of a module and the first step cost."""
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True)
    line = re.search(r"step_us ([\d.]+) module_us ([\d.]+) first_us (\d+)", done.stdout)
    if line is None:
        raise SystemExit(f"no figures from {command}: {done.stderr}")
    return float(line[1]), float(line[2]), float(line[3])


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--programs", nargs="+", default=["tiny", "conv", "transformer"])
    asked = parser.parse_args()
    print("| program | way | loop CPU s | factor | least | most | wall s | peak MiB |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for program in asked.programs:
        rounds: list[dict[str, dict[str, float]]] = []
        with tempfile.TemporaryDirectory() as folder:
            for number in range(asked.rounds):
                for taken in ("run", "waiting"):  # a run folder that holds files is refused
                    shutil.rmtree(Path(folder) / taken, ignore_errors=True)
                fronts = ways(Path(folder))
                order = list(fronts)[:: 1 if number % 2 else -1]
                run = {name: loop_figures([*fronts[name], "programs.py", program, str(asked.steps)]) for name in order}
                rounds.append({name: run[name] for name in fronts})
            told = json.loads((Path(folder) / "run" / "rank0" / "recording.json").read_text())
        for name in rounds[0]:
            factors = [one[name]["cpu_s"] / one["plain"]["cpu_s"] for one in rounds]
            cpu_s, wall_s, rss = (
                statistics.median(one[name][what] for one in rounds) for what in ("cpu_s", "wall_s", "rss_mib")
            )
            print(
                f"| {program} | {name} | {cpu_s:.2f} | {statistics.median(factors):.3f} | {min(factors):.3f} "
                f"| {max(factors):.3f} | {wall_s:.2f} | {rss:.0f} |",
                flush=True,
            )
        stops = ", ".join(
            f"{one['name']} {one['stop_ns'] / 1e6:.0f} ms" for one in told["windows"] if one["stop_ns"] > 1e6
        )
        print(f"\n{program}: {told['steps_seen']} steps by rule {told['step_rule']}; stop and export: {stops}\n")
    with tempfile.TemporaryDirectory() as folder:
        plain, recorded = (hooks_us([*ways(Path(folder))[name], "hooks.py"]) for name in ("plain", "outside windows"))
    print(
        f"outside windows: {recorded[0]:.1f} µs a step, {recorded[1] - plain[1]:.2f} µs a call of a module, "
        f"{recorded[2] / 1000:.1f} ms once, in the first step"
    )


if __name__ == "__main__":
    main()
