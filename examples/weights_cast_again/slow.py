"""Autocast without its cache converts the same weights again in every use of them."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 30
USES = 12


def train(dtype, casting):
    """Train a recurrent cell whose weights are kept in a type, in a context that may convert them."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cell = nn.Linear(768, 768, dtype=dtype)
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.01)
    for (start,) in DataLoader(TensorDataset(torch.randn(4 * BATCHES, 768, dtype=dtype)), batch_size=4):
        x = start
        with casting:
            for _ in range(USES):
                x = torch.tanh(cell(x))
            loss = x.float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(torch.float32, torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False))
