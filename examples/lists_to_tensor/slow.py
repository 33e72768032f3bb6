"""Each sample is a Python list of arrays, and ``torch.tensor`` goes through it number by number."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FRAMES, WIDTH = 64, 64
BATCHES = 40


class Recordings(Dataset):
    """Made-up recordings of some frames, and the loudness to be learnt from each.

    Args:
        as_tensor: Makes one tensor of a list of frames.
    """

    def __init__(self, as_tensor):
        self.noise = np.random.default_rng(0)
        self.as_tensor = as_tensor

    def __len__(self):
        return 16 * BATCHES

    def __getitem__(self, index):
        frames = list(self.noise.standard_normal((FRAMES, WIDTH), dtype=np.float32))
        return self.as_tensor(frames), np.float32(frames[0].std())


def number_by_number(frames):
    return torch.tensor(frames)


def train(as_tensor):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Flatten(), nn.Linear(FRAMES * WIDTH, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for frames, loudness in DataLoader(Recordings(as_tensor), batch_size=16):
        loss = nn.functional.mse_loss(model(frames)[:, 0], loudness)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(number_by_number)
