"""The garbage collector is called in each step, as a remedy against running out of memory."""

import gc
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 22


def train(collects):
    """Train, and call the garbage collector in each step where asked to."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    data = TensorDataset(torch.randn(64 * BATCHES, 64), torch.randn(64 * BATCHES, 1))
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for readings, values in DataLoader(data, batch_size=64):
        loss = nn.functional.mse_loss(model(readings), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if collects:
            gc.collect()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(collects=True)
