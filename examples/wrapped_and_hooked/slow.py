"""Every layer sits in twenty wrappers that only call the next, each with a hook that does nothing."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 40
WRAPPERS = 20


def wrapped(layer):
    for _ in range(WRAPPERS):
        layer = nn.Sequential(layer)
        layer.register_forward_hook(lambda *_: None)
    return layer


def train(wrap):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(*(wrap(nn.Linear(32, 32)) for _ in range(20)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (x,) in DataLoader(TensorDataset(torch.randn(8 * BATCHES, 32)), batch_size=8):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(wrapped)
