"""A small classifier whose middle layer is a wide 7 by 7 convolution at full resolution."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 22


class Net(nn.Module):
    """A stem, a mixer and a head.

    Args:
        mixer: What lies between; 64 channels in and out.
    """

    def __init__(self, mixer):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU())
        self.mixer = mixer
        self.head = nn.Linear(64, 10)

    def forward(self, pictures):
        return self.head(self.mixer(self.stem(pictures)).mean((2, 3)))


def train(mixer):
    torch.manual_seed(0)
    pictures, labels = torch.randn(16 * BATCHES, 3, 64, 64), torch.randint(0, 10, (16 * BATCHES,))
    model = Net(mixer)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for batch, wanted in DataLoader(TensorDataset(pictures, labels), batch_size=16):
        loss = nn.functional.cross_entropy(model(batch), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    train(nn.Conv2d(64, 64, 7, padding=3))
