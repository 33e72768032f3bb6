"""What a step and a call of a module cost while nothing is recorded: our part of each step of a real loop.

Run by run.py, plainly and under uncork; prints microseconds. A step's part is taken between two steps of thousands of
operators, so the caches hold what torch left there: called in a row the same code costs a tenth. What the first step
costs once (the process claims its folder) stands apart.
"""

import statistics
import sys
import time

import programs
import torch
from torch import nn


def call_us(call, times=50_000):
    """Return the CPU time of a call, the least of five rounds."""
    rounds = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(times):
            call()
        rounds.append((time.process_time() - begun) / times * 1e6)
    return min(rounds)


def steps_us(recorder, steps=400):
    """Return the time of our part of each step of the program of tiny operators, in order."""
    spent, guard = [], recorder.guard

    def timed(what):
        begun = time.perf_counter()
        guard(what)
        spent.append((time.perf_counter() - begun) * 1e6)

    recorder.guard = timed
    programs.tiny(steps)
    return spent


def main():
    """Print what a step costs (nothing without uncork), what the first one costs, and a call of a module."""
    torch.set_num_threads(1)
    inside = sys.modules.get("uncork.capture.inside")
    recorder = inside.recorder if inside else None
    first, *others = steps_us(recorder) if recorder is not None else [0.0, 0.0]
    module, x = nn.Identity(), torch.zeros(1)
    # Half of the time another program may have the processor, so the quarter of the steps that went best counts.
    step = statistics.quantiles(others, n=4)[0] if len(others) > 1 else 0.0
    print(f"step_us {step:.2f} module_us {call_us(lambda: module(x)):.2f} first_us {first:.0f}")


if __name__ == "__main__":
    main()
