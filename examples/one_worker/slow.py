"""Samples come from a slow disk, and a single worker fetches them."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FETCH_S = 0.002
BATCHES = 50


class Readings(Dataset):
    """Made-up sensor readings."""

    def __init__(self, count):
        self.readings = torch.randn(count, 64, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.readings)

    def __getitem__(self, index):
        time.sleep(FETCH_S)  # stands for the disk: waiting, not computing
        return self.readings[index]


def train(workers):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for readings in DataLoader(Readings(16 * BATCHES), 16, num_workers=workers, persistent_workers=True):
        for _ in range(60):  # long enough for six workers to bring the next batch meanwhile
            loss = (model(readings) - readings.mean(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(workers=1)
