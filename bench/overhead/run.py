"""What recording costs: the same program plain, under uncork, under cProfile and under py-spy, in turns, in CPU time.

    python bench/overhead/run.py [--rounds 3] [--steps 200] [--programs tiny conv transformer]

Wall time says little on a shared machine, so the figure is the CPU time of the loop in the program's own process,
the least of all rounds, and the factor on the plain run; the least wall time stands beside it. "outside windows" is a
recording that waits for a trigger: every hook is in place and counts steps, no window begins. py-spy is left out where
it is not installed.
"""

import argparse
import json
import os
import re
import shutil
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
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=True)
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
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--programs", nargs="+", default=["tiny", "conv", "transformer"])
    asked = parser.parse_args()
    print("| program | way | loop CPU s | factor | wall s | peak MiB |\n|---|---|---:|---:|---:|---:|")
    for program in asked.programs:
        best: dict[str, dict[str, float]] = {}
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(asked.rounds):
                for taken in ("run", "waiting"):  # a run folder that holds files is refused
                    shutil.rmtree(Path(folder) / taken, ignore_errors=True)
                for name, front in ways(Path(folder)).items():
                    got = loop_figures([*front, "programs.py", program, str(asked.steps)])
                    before = best.get(name, got)
                    best[name] = {figure: min(value, before[figure]) for figure, value in got.items()}
            told = json.loads((Path(folder) / "run" / "rank0" / "recording.json").read_text())
        for name, got in best.items():
            factor = got["cpu_s"] / best["plain"]["cpu_s"]
            cells = (
                program,
                name,
                f"{got['cpu_s']:.2f}",
                f"{factor:.3f}",
                f"{got['wall_s']:.2f}",
                f"{got['rss_mib']:.0f}",
            )
            print("| " + " | ".join(cells) + " |", flush=True)
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
