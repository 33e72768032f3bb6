"""Eight threads per core compute, as when OMP_NUM_THREADS was set for a larger machine."""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 60


def train(threads):
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    data = TensorDataset(torch.randn(64 * BATCHES, 512), torch.randn(64 * BATCHES, 1))
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for readings, values in DataLoader(data, batch_size=64):
        loss = nn.functional.mse_loss(model(readings), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(threads=8 * len(os.sched_getaffinity(0)))
