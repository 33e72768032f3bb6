"""Programs with regions that may outlive a trace: one per word on the command line."""

import gc
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.profiler import record_function


class Slow(torch.autograd.Function):
    """An operator written in Python that computes for seconds."""

    @staticmethod
    def forward(ctx, x):  # noqa: ARG004  # torch passes it
        """Return what many small operators make of x."""
        until = time.monotonic() + 3
        while time.monotonic() < until:
            for _ in range(50):
                x = (x * 1.0001 + 0.1).sin()
        return x


class Short(torch.autograd.Function):
    """An operator written in Python that is over soon."""

    @staticmethod
    def forward(ctx, x):  # noqa: ARG004  # torch passes it
        """Return what some small operators make of x."""
        for _ in range(40):
            x = (x * 1.0001 + 0.1).sin()
        return x


class Loop(nn.Module):
    """A module whose one call is the training."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 3)

    def forward(self, number):
        """Make so many steps."""
        optimizer = torch.optim.SGD(self.inner.parameters(), lr=0.1)
        for _ in range(number):
            self.inner(torch.ones(4, 8)).sum().backward()
            optimizer.step()


def steps():
    """Make so many steps, with one region open from one of them on, up to another."""
    number, begin, end = map(int, sys.argv[2:5])
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    region = None
    for step in range(number):
        if step == begin:
            region = record_function('part "one"')
            region.__enter__()
        if step == end:
            region.__exit__(None, None, None)
            region = None
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()


def decorated():
    """Make steps of which each ends, by its update, inside a region that a decorator opens for each call."""
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @record_function("step")
    def step():
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()

    for _ in range(40):
        step()


def wait_for_profiler():
    """Compute until somebody records it."""
    x = torch.randn(64)
    while not torch.autograd._profiler_enabled():
        x = (x * 1.0001 + 0.1).sin()


def operator():
    """Compute inside one operator that begins while somebody records, without a step."""
    wait_for_profiler()
    print(Slow.apply(torch.ones(64)).shape)


def operators():
    """Compute in such operators and beside them, without a step, until a deep trace is there, or a minute is over."""
    x, until = torch.ones(64), time.monotonic() + 60
    while time.monotonic() < until and not any(Path(sys.argv[2]).glob("rank*/deep.trace.json*")):
        for _ in range(50):
            x = Short.apply(x)
            for _ in range(10):
                x = (x * 1.0001 + 0.1).sin()
    print("recorded" if time.monotonic() < until else "waited in vain")


def module():
    """Make steps in calls that end; once somebody records, thirty in one that lasts; then others again."""
    loop = Loop()
    while not torch.autograd._profiler_enabled():
        loop(1)
    loop(30)
    for _ in range(12):
        loop(1)


class Bin:
    """Garbage whose end is found by the collector alone, and takes as long as somebody records."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        """Compute until the trace has ended."""
        x = torch.randn(64)
        while torch.autograd._profiler_enabled():
            x = (x * 1.0001 + 0.1).sin()


def collection():
    """Collect garbage over the end of a trace, then make steps."""
    gc.disable()
    wait_for_profiler()
    Bin()
    gc.collect()
    sys.argv[2:] = "39", "99", "99"
    steps()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
