"""A conditional breakpoint was left in: the debugger looks at every line of the loop."""

import io
import pdb  # noqa: T100 - the debugger that was left in
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 60


def letters(number):
    """Return how often letters occur in a made-up text."""
    counts = {}
    for place in range(400):
        letter = (number * place) % 26
        counts[letter] = counts.get(letter, 0) + 1
    return counts


def train(watch):
    """Train.

    Args:
        watch: What to do before the loop.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch()
    total = 0
    for number, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(16 * BATCHES, 64)), batch_size=16)):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += len(letters(number))
    sys.stdout.write(f"loss {loss.item():.4f}, {total} letters\n")


def stop_never():
    """Set a breakpoint whose condition never holds, and go on."""
    debugger = pdb.Pdb(stdin=io.StringIO("continue\n"), stdout=io.StringIO())
    debugger.set_break(__file__, letters.__code__.co_firstlineno + 5, cond="letter > 26")
    debugger.set_trace()


if __name__ == "__main__":
    train(stop_never)
