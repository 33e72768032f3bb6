"""Each sample is stored as compressed JSON, and unpacked again in every epoch."""

import json
import sys
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCHES = 40


class Packed(Dataset):
    """Made-up readings, stored as bytes."""

    def __init__(self, count):
        readings = torch.randn(count, 1024, generator=torch.Generator().manual_seed(0))
        self.items = [zlib.compress(json.dumps(one.tolist()).encode()) for one in readings]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return decode(self.items[index])


class Unpacked(Packed):
    """The same, unpacked once."""

    def __init__(self, count):
        super().__init__(count)
        self.unpacked = torch.stack([decode(one) for one in self.items])

    def __getitem__(self, index):
        return self.unpacked[index]


def decode(item):
    return torch.tensor(json.loads(zlib.decompress(item)))


def train(kind):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for readings in DataLoader(kind(32 * BATCHES), batch_size=32):
        loss = (model(readings) - readings.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(Packed)
