"""NumPy makes doubles unless told otherwise: twice the bytes to stack, and each batch is converted for the model."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WIDTH = 3 * 128 * 128
BATCHES = 40


class Pictures(Dataset):
    """Made-up pictures, and the brightness to be learnt from each.

    Args:
        dtype: Of the pictures.
    """

    def __init__(self, dtype):
        self.pictures = np.random.default_rng(0).random((64, WIDTH)).astype(dtype)

    def __len__(self):
        return 32 * BATCHES

    def __getitem__(self, index):
        picture = self.pictures[index % 64]
        return torch.from_numpy(picture), np.float32(picture[0])


def train(dtype):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Linear(WIDTH, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for pictures, brightness in DataLoader(Pictures(dtype), batch_size=32):
        loss = nn.functional.mse_loss(model(pictures.float())[:, 0], brightness)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(np.float64)
