"""Activations are recomputed in the backward pass, though memory is nearly empty."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 50


def again(layers, x):
    """Go through the layers, and once more in the backward pass."""
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)
    return x


def train(forward):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = nn.ModuleList(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(4))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    for (x,) in DataLoader(TensorDataset(torch.randn(256 * BATCHES, 256)), batch_size=256):
        loss = forward(layers, x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(again)
