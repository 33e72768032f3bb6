"""Gradients of four micro-batches are accumulated, and exchanged after each of them (``torchrun``)."""

import os
import sys
from contextlib import nullcontext

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 120
MICRO_BATCHES = 4


def train(rarely):
    """Train; exchange only with the last micro-batch where asked to."""
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for number, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(8 * BATCHES, 512)), batch_size=8), start=1):
        last = number % MICRO_BATCHES == 0
        with model.no_sync() if rarely and not last else nullcontext():
            loss = model(x).square().mean()
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    sys.stdout.write(f"rank {os.environ['RANK']}: loss {loss.item():.4f}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    train(rarely=False)
