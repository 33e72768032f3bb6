"""Measures the way from columns to the ledger: nesting, launches joined with kernels, self times, the ledger of steps.

    python bench/reading/ledger.py                   # 740 MB: two million events
    python bench/reading/ledger.py --megabytes 100

The trace is read once, before the clock runs; each round starts from its columns. CPU time says how much work it is,
wall time how long one waits on a machine as busy as this one is.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from run import machine, traces

from uncork import readers
from uncork.measure import Rank
from uncork.recording import Recording

STAGES = {
    "nesting of host slices": lambda rank: rank.timeline.host,
    "launches joined with kernels and operators": lambda rank: rank.timeline.launch_op,
    "call tree: self times of operators": lambda rank: rank.calltree.op_self_ns,
    "steps and ledger": lambda rank: rank.ledger,
}
"""What is asked for, in this order; each keeps what the ones before it worked out."""


def one_round(recording: Recording) -> list[tuple[float, float]]:
    """Return (wall, CPU) seconds of each stage, and of all together at the end."""
    rank, spent = Rank(recording), []
    for stage in STAGES.values():
        wall, cpu = time.perf_counter(), time.process_time()
        stage(rank)
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))
    return [*spent, (sum(wall for wall, _ in spent), sum(cpu for _, cpu in spent))]


def main() -> None:
    """Generate, read, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=740)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "uncork-bench-reading")
    wanted = parser.parse_args()
    wanted.cache.mkdir(parents=True, exist_ok=True)
    plain, _ = traces(wanted.cache, wanted.megabytes, compact=False)
    (recording,) = readers.read(plain)
    if recording.events is None:
        sys.exit("the trace holds no events")
    rounds = [one_round(recording) for _ in range(wanted.repeats)]
    print(f"{len(recording.events):,} events, median of {wanted.repeats}, on {machine()}\n")
    print("| from columns to the ledger | wall s | CPU s |\n|---|---:|---:|")
    for place, name in enumerate([*STAGES, "together"]):
        wall, cpu = (statistics.median(one[place][which] for one in rounds) for which in (0, 1))
        print(f"| {name} | {wall:.2f} | {cpu:.2f} |")


if __name__ == "__main__":
    main()
