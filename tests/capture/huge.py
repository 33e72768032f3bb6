"""Programs whose steps have very many operators or calls; each prints its peak memory in KiB."""

import resource
import sys

import torch
from torch import nn

OPERATORS = 1_500_000


def small(step):
    """Make a few operators."""
    step(lambda x: x * 2)


def silent(step):
    """Make a million and a half operators that no hook sees, after one that it does."""

    def work(x):
        with torch.no_grad():
            y = torch.zeros(2)
            for _ in range(OPERATORS):
                y = y + 1
        return x + y.sum()

    step(work)


def graph(step):
    """Make a graph of a fifth as many nodes, and one backward through all of it."""

    def work(x):
        for _ in range(OPERATORS // 5):
            x = x + 1
        return x

    step(work)


def calls(step):
    """Make a million Python calls."""

    def nothing():
        pass

    def work(x):
        for _ in range(OPERATORS // 3):
            nothing()
        return x * 2

    step(work)


def backward(step):
    """Make them inside backward, where no profiler can be ended."""

    def loop(gradient):
        y = torch.zeros(2)
        for _ in range(OPERATORS):
            y = y + 1
        return gradient * 1

    def work(x):
        x = x * 2
        x.register_hook(loop)
        return x

    step(work)


PROGRAMS = {
    "little": 9 * [small],
    "silent": 8 * [small] + [silent, small],
    "silent_later": 12 * [small] + 2 * [silent] + [small],  # a first step may be too slow to count: one falls in deep
    "graph": 8 * [small] + [graph, small],
    "backward": 8 * [small] + [backward] + 20 * [small],
    "calls": 11 * [small] + 3 * [calls],
}


def main(way):
    """Train with steps of the kind asked for."""
    model = nn.Identity()
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step(work):
        optimizer.zero_grad()
        work(model(weight)).sum().backward()
        optimizer.step()

    torch.set_num_threads(1)
    for kind in PROGRAMS[way]:
        kind(step)
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main(sys.argv[1])
