"""Augmentation blurs the whole picture, and only then crops the small part that the model sees."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE, SEEN = 256, 32
BATCHES = 40


class Pictures(Dataset):
    """Made-up pictures, augmented each time, and the brightness to be learnt from each."""

    def __init__(self, augment):
        self.noise = np.random.default_rng(0)
        self.pictures = self.noise.random((64, SIDE, SIDE), dtype=np.float32)
        self.augment = augment

    def __len__(self):
        return 8 * BATCHES

    def __getitem__(self, index):
        row, column = self.noise.integers(2, SIDE - SEEN - 2, 2)
        seen = self.augment(self.pictures[index % 64], row, column)
        return torch.from_numpy(seen), seen.mean()


def blur(picture):
    """Return a picture in which each point is the mean of the 5 by 5 around it."""
    total = np.zeros_like(picture)
    for down in range(-2, 3):
        for right in range(-2, 3):
            total += np.roll(picture, (down, right), (0, 1))
    return total / 25


def augment(picture, row, column):
    return blur(picture)[row : row + SEEN, column : column + SEEN]


def train(augment, finish=lambda batch: batch):
    """Train on pictures augmented one by one, and finished as a batch."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Flatten(), nn.Linear(SEEN * SEEN, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for seen, brightness in DataLoader(Pictures(augment), batch_size=8):
        loss = nn.functional.mse_loss(model(finish(seen))[:, 0], brightness)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(augment)
