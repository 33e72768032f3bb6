"""Measures how fast and how small uncork reads traces, beside other readers, whole processes, in one run.

    python bench/reading/run.py                      # 100 MB, each tool three times
    python bench/reading/run.py --sizes 100 500 2000 --table docs/reading-speed.md  # its notes by hand stay
    python bench/reading/run.py --sizes 2000 --only uncork

The peers from outside (orjson, Holistic Trace Analysis) are installed by this script into an environment of their own;
where that fails their rows say why.
Every figure is of the whole process, start of Python included: wall time, CPU time and peak resident memory; all
packages are compiled to bytecode beforehand, as an installation by pip does.
"""

import argparse
import compileall
import gzip
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PEERS = ("orjson", "HolisticTraceAnalysis==0.5.0", "pandas<3")  # with pandas 3 HTA ends in an overflow of int16

MOST_MEGABYTES_OF_PEERS = 1000
"""Beyond it the others want 14 GB and minutes."""

NOTES = "## Notes\n"
"""What follows in a file of tables is written by hand."""

READ = "import sys, pathlib; from uncork import readers; readers.read(pathlib.Path(sys.argv[1]))"
PORTABLE = f"from uncork.readers import engine; engine._compiled = lambda: None; {READ}"
HTA = (
    "import sys; from hta.common.trace import Trace; "
    "Trace(trace_files={0: sys.argv[1]}).parse_traces(use_multiprocessing=False)"
)
HTA_BREAKDOWN = (
    "import sys; from hta.trace_analysis import TraceAnalysis; "
    "TraceAnalysis(trace_files={0: sys.argv[1]}).get_temporal_breakdown(visualize=False)"
)


@dataclass(frozen=True)
class Tool:
    """A way to read a trace.

    Args:
        name: As the table calls it.
        command: What to run; the trace's path is appended.
        packed: It is given the gzip file instead of the plain one.
        baseline: Which bars compare with it: ``orjson``, ``hta``, ``hta breakdown``, ``inflate`` or empty.
    """

    name: str
    command: tuple[str, ...]
    packed: bool = False
    baseline: str = ""


@dataclass(frozen=True)
class Figures:
    """What running a tool took: medians over the repeats; or why it did not run."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    trouble: str = ""


def tools(peers: Path | str) -> Iterator[Tool]:
    """Yield what is compared; a text instead of the peers' interpreter is the reason why they are missing."""
    python = sys.executable
    yield Tool("uncork: read", (python, "-c", READ))
    yield Tool("uncork: read, gzip", (python, "-c", READ), packed=True)
    yield Tool("uncork: analyze, the whole verdict", (python, "-m", "uncork", "analyze", "-q"))
    yield Tool("uncork without compiled code: read", (python, "-c", PORTABLE))
    inflate = (
        "import sys; from isal import igzip\nwith igzip.open(sys.argv[1]) as file:\n    while file.read(1 << 19): pass"
    )
    yield Tool("isal inflating alone, gzip", (python, "-c", inflate), packed=True, baseline="inflate")
    interpreter = str(peers) if isinstance(peers, Path) else ""
    orjson = "import sys, orjson; orjson.loads(open(sys.argv[1], 'rb').read())"
    yield Tool("orjson.loads", (interpreter, "-c", orjson), baseline="orjson")
    yield Tool("json.load", (python, "-c", "import sys, json; json.load(open(sys.argv[1]))"))
    yield Tool("HTA: parse", (interpreter, "-c", HTA), baseline="hta")
    yield Tool("HTA: parse and temporal breakdown", (interpreter, "-c", HTA_BREAKDOWN), baseline="hta breakdown")


def measured(tool: Tool, trace: Path, repeats: int, trouble: str) -> Figures:
    """Return what a tool takes to read a trace."""
    if not tool.command[0]:
        return Figures(trouble=trouble)
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        process = subprocess.Popen(
            [*tool.command, str(trace)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ
        )
        error = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - began
        if process.returncode:
            return Figures(trouble=f"ended with {process.returncode} {error.decode()[-80:]}".strip())
        runs.append((wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024))
    return Figures(
        statistics.median(run[0] for run in runs),
        statistics.median(run[1] for run in runs),
        int(statistics.median(run[2] for run in runs)),
    )


def peers_in(cache: Path) -> Path | str:
    """Return the interpreter of an environment with the peers in it, or why there is none."""
    folder = cache / "peers"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    done = subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], capture_output=True, text=True, check=False)
    return python if done.returncode == 0 else f"{', '.join(PEERS)} could not be installed"


def traces(cache: Path, megabytes: int, *, compact: bool) -> tuple[Path, Path]:
    """Return the paths of a generated trace, plain and packed."""
    plain = cache / f"{megabytes}{'-compact' if compact else ''}.json"
    packed = plain.with_suffix(".json.gz")
    if not plain.exists():
        command = [sys.executable, str(HERE / "generate.py"), str(megabytes), str(plain)]
        subprocess.run(command + ["--compact"] * compact, check=True)
    if not packed.exists():
        with plain.open("rb") as source, gzip.open(packed, "wb", 6) as target:
            shutil.copyfileobj(source, target, 1 << 20)
    return plain, packed


def table(title: str, size_bytes: int, rows: list[tuple[Tool, Figures]]) -> list[str]:
    """Return a Markdown table of one trace."""
    lines = [f"### {title}", "", "| reader | wall s | CPU s | peak MB | peak ÷ file |", "|---|---:|---:|---:|---:|"]
    for tool, figures in rows:
        if figures.trouble:
            lines.append(f"| {tool.name} | not measured: {figures.trouble} | | | |")
        else:
            peak = figures.peak_bytes
            lines.append(
                f"| {tool.name} | {figures.wall_s:.2f} | {figures.cpu_s:.2f} "
                f"| {peak / 1e6:.0f} | {peak / size_bytes:.2f} |"
            )
    return [*lines, "", *ratios(rows), ""]


def ratios(rows: list[tuple[Tool, Figures]]) -> list[str]:
    """Return how many times faster uncork is than the baselines, in this run."""
    by_name = {tool.baseline or tool.name: figures for tool, figures in rows if not figures.trouble}
    lines = []
    for ours, theirs, words in (
        ("uncork: read", "orjson", "reading is {:.1f} × as fast as orjson.loads"),
        ("uncork: read", "hta", "reading is {:.1f} × as fast as HTA's parse"),
        (
            "uncork: analyze, the whole verdict",
            "hta breakdown",
            "the whole analysis is {:.1f} × as fast as HTA's breakdown",
        ),
        ("uncork: read, gzip", "inflate", "reading gzip runs at {:.0%} of the rate of inflating alone"),
    ):
        if ours in by_name and theirs in by_name:
            wall = by_name[theirs].wall_s / by_name[ours].wall_s
            cpu = by_name[theirs].cpu_s / by_name[ours].cpu_s
            lines.append(f"- {words.format(wall)} in wall time, {cpu:.1f} × in CPU time")
    return lines


def machine() -> str:
    """Return what this was measured on."""
    told = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    cpu = next((line.split(":")[1].strip() for line in told if "model name" in line), platform.processor())
    return f"{os.cpu_count()} cores ({cpu}), Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"


def notes(table: Path) -> str:
    """Return what stands by hand behind the tables of a file, so that new tables leave it as it is."""
    _, mark, text = table.read_text().partition(NOTES) if table.exists() else ("", "", "")
    return mark + text


def main() -> None:
    """Measure and print; write the table where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100], help="MB of JSON")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compact", action="store_true", help="one line instead of Kineto's layout")
    parser.add_argument("--only", default="", help="only tools whose name holds this")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "uncork-bench-reading")
    parser.add_argument("--table", type=Path, help="write the tables into this file")
    wanted = parser.parse_args()
    wanted.cache.mkdir(parents=True, exist_ok=True)
    # Where Python may not write bytecode, a checkout would be compiled anew by every run, its peers by none.
    compileall.compile_dir(ROOT / "src", quiet=1)
    peers = "left out" if wanted.only == "uncork" else peers_in(wanted.cache)
    lines = [
        "# How fast traces are read",
        "",
        " ".join(__doc__.split("\n\n")[2].split()),
        "",
        f"Measured on {machine()}.",
        "",
    ]
    for megabytes in wanted.sizes:
        plain, packed = traces(wanted.cache, megabytes, compact=wanted.compact)
        rows = []
        for tool in tools(peers):
            if wanted.only in tool.name:
                if megabytes > MOST_MEGABYTES_OF_PEERS and not tool.name.startswith(("uncork: ", "isal")):
                    figures = Figures(trouble="left out, as it wants many GB of memory")
                else:
                    figures = measured(tool, packed if tool.packed else plain, wanted.repeats, str(peers))
                rows.append((tool, figures))
                print(f"{megabytes} MB  {tool.name:40} {figures}", file=sys.stderr)
        layout = "compact JSON" if wanted.compact else "Kineto's layout"
        lines += table(f"{megabytes} MB, {layout}, median of {wanted.repeats}", plain.stat().st_size, rows)
    print("\n".join(lines))
    if wanted.table:
        wanted.table.write_text("\n".join(lines) + notes(wanted.table))


if __name__ == "__main__":
    main()
