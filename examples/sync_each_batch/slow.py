"""Two processes exchange all gradients after each small batch: ``torchrun --nproc-per-node 2 slow.py``."""

import contextlib
import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WIDTH = 2048
BATCHES = 64


def train(every):
    """Train with one exchange for so many batches."""
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(4 * BATCHES, WIDTH), torch.randint(0, 10, (4 * BATCHES,)))
    for number, (batch, wanted) in enumerate(DataLoader(data, 2, sampler=DistributedSampler(data)), 1):
        last = number % every == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(batch), wanted) / every
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    sys.stdout.write(f"rank {os.environ['RANK']}: loss {loss.item() * every:.3f}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    train(every=1)
