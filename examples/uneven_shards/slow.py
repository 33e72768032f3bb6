"""Each worker reads its own shard, and one of the shards lies on a slow disk: batches come in order, so all wait."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info

BATCHES = 64
WORKERS = 2


class Shards(Dataset):
    """Made-up readings.

    Args:
        waits_s: Time each worker needs for an item.
    """

    def __init__(self, waits_s):
        self.waits_s = waits_s
        self.readings = torch.randn(16 * BATCHES, 64, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.readings)

    def __getitem__(self, index):
        time.sleep(self.waits_s[get_worker_info().id])  # stands for the disk
        return self.readings[index]


def train(waits_s):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for readings in DataLoader(Shards(waits_s), 16, num_workers=WORKERS):
        loss = (model(readings) - readings.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(waits_s=(0.0002, 0.004))
