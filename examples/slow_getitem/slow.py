"""Each sample takes 3 ms to fetch, as from a busy disk or a store in the network, and one process fetches them all."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FETCH_S = 0.003
BATCHES = 36


class Readings(Dataset):
    """Made-up sensor readings, and the value to be learnt from each."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        self.readings = torch.randn(count, 64, generator=generator)
        self.values = self.readings.mean(1, keepdim=True)

    def __len__(self):
        return len(self.readings)

    def __getitem__(self, index):
        return fetch(self.readings, index), self.values[index]


def fetch(readings, index):
    time.sleep(FETCH_S)  # stands for the disk: waiting, not computing
    return readings[index]


def train(**loader_options):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    loader = DataLoader(Readings(16 * BATCHES), batch_size=16, shuffle=True, **loader_options)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for readings, values in loader:
        loss = nn.functional.mse_loss(model(readings), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train()
