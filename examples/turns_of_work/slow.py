"""Long and short batches are dealt out in turn, so that one of two processes always waits (``torchrun``)."""

import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 170


def train(lengths):
    """Train.

    Args:
        lengths: Returns the rows of a step on a rank.
    """
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rank = distributed.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(512 * BATCHES, 512)), batch_size=512)):
        loss = model(x[: lengths(number, rank)]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"rank {os.environ['RANK']}: loss {loss.item():.4f}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    train(lambda number, rank: 512 if (number + rank) % 2 else 64)
