"""Each sample lies in a file of its own, which is opened, parsed and closed each time."""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLES, WIDTH = 512, 64
EPOCHS = 8


class Files(Dataset):
    """Samples in a folder, one file each.

    Args:
        folder: Where.
        samples: What to write there first.
    """

    def __init__(self, folder, samples):
        self.paths = [folder / f"{number}.npy" for number in range(len(samples))]
        for path, sample in zip(self.paths, samples, strict=True):
            np.save(path, sample)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return np.load(self.paths[index])


def train(dataset):
    """Learn the samples' means from a data set made by ``dataset(folder, samples)``."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    samples = np.random.default_rng(0).random((SAMPLES, WIDTH), dtype=np.float32)
    model = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(dataset(Path(folder), samples), batch_size=64, shuffle=True)
        for _ in range(EPOCHS):
            for batch in loader:
                loss = nn.functional.mse_loss(model(batch)[:, 0], batch.mean(1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(Files)
