"""Data-parallel training over gloo, started by torchrun; prints each rank's last loss."""

import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    """Train."""
    distributed.init_process_group("gloo")
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(240, 8), torch.randint(0, 3, (240,)))
    loader = DataLoader(data, 4, sampler=DistributedSampler(data))
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"rank {os.environ['RANK']} {loss.item().hex()}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
