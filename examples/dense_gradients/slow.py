"""Two processes exchange the whole gradient of a large table each time: ``torchrun --nproc-per-node 2 slow.py``."""

import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

WORDS, WIDTH = 120_000, 64
BATCHES = 24


def train(**table_options):
    """Train on a few words of a large table at a time."""
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = nn.Sequential(nn.EmbeddingBag(WORDS, WIDTH, **table_options), nn.Linear(WIDTH, 10))
    model = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randint(0, WORDS, (8 * BATCHES, 20)), torch.randint(0, 10, (8 * BATCHES,)))
    for batch, wanted in DataLoader(data, 4, sampler=DistributedSampler(data)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), wanted)
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"rank {os.environ['RANK']}: loss {loss.item():.3f}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    train()
