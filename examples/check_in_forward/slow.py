"""A compiled model looks at a number in each of its blocks: compiled code ends there, and begins anew."""

import math
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 60
BLOCKS = 20


class Block(nn.Module):
    """Two layers, and perhaps a look at what the first makes."""

    def __init__(self, look):
        super().__init__()
        self.first, self.second, self.look = nn.Linear(32, 64), nn.Linear(64, 32), look

    def forward(self, x):
        hidden = self.first(x).relu()
        if self.look and math.isnan(hidden.sum().item()):
            sys.exit("not a number")
        return x + self.second(hidden)


def train(look):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # No backend: what costs here is leaving compiled code, on any machine and without a C++ compiler.
    model = torch.compile(nn.Sequential(*[Block(look) for _ in range(BLOCKS)]), backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (x,) in DataLoader(TensorDataset(torch.randn(16 * BATCHES, 32)), batch_size=16):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(look=True)
