"""What a step and a call of a module cost while nothing is recorded: the hooks, called as torch calls them.

Run by run.py, plainly and under uncork; prints microseconds of CPU time.
"""

import sys
import time

import torch
from torch import nn


def cost_us(call, times=50_000):
    """Return the CPU time of a call, the least of five rounds."""
    rounds = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(times):
            call()
        rounds.append((time.process_time() - begun) / times * 1e6)
    return min(rounds)


def main():
    """Print what a step's hook costs (nothing without uncork) and a call of a module."""
    torch.set_num_threads(1)
    module, x = nn.Identity(), torch.zeros(1)
    inside = sys.modules.get("uncork.capture.inside")
    recorder = inside.recorder if inside else None
    step_us = 0.0
    if recorder is not None:
        (torch.zeros(1, requires_grad=True) * 2).sum().backward()
        recorder.complete = True
        step_us = cost_us(lambda: recorder.guard(lambda: recorder.take(recorder.finder.backward(updated_inside=False))))
    print(f"step_us {step_us:.2f} module_us {cost_us(lambda: module(x)):.2f}")


if __name__ == "__main__":
    main()
