"""Every tenth step takes long, and the worker may make one batch meanwhile: the next ones are waited for again."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCHES = 120
LONG_S = 0.25


class Readings(Dataset):
    """Made-up readings that take a while to compute."""

    def __len__(self):
        return 8 * BATCHES

    def __getitem__(self, index):
        readings = torch.randn(64, generator=torch.Generator().manual_seed(index))
        time.sleep(0.0015)
        return readings


def train(prefetch_factor):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Readings(), 8, num_workers=1, prefetch_factor=prefetch_factor)
    for number, readings in enumerate(loader):
        loss = (model(readings) - readings.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 10 == 9:
            time.sleep(LONG_S)  # stands for an evaluation
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(prefetch_factor=1)
