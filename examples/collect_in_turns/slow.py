"""Two processes collect garbage in different steps, and each time the other one waits (``torchrun``)."""

import gc
import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 26
RECORDS = 100_000


def train(collects):
    """Train.

    Args:
        collects: Returns whether a rank collects garbage in a step.
    """
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rank = distributed.get_rank()
    gc.disable()
    gc.freeze()  # what was imported is left alone; each collection goes through the records
    records = [[number] for number in range(RECORDS)]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for number, (x,) in enumerate(DataLoader(TensorDataset(torch.randn(64 * BATCHES, 512)), batch_size=64)):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if collects(number, rank):
            gc.collect()
    sys.stdout.write(f"rank {os.environ['RANK']}: loss {loss.item():.4f}, {len(records)} records\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    train(lambda number, rank: number % 2 == rank)
