"""Items that compute, and four times as many workers as cores: they take turns."""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCHES = 40


class Spectra(Dataset):
    """The spectrum of made-up noise."""

    def __len__(self):
        return 16 * BATCHES

    def __getitem__(self, index):
        noise = torch.randn(1 << 14, generator=torch.Generator().manual_seed(index))
        return torch.fft.rfft(noise).abs()[:256]


def train(workers):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Linear(256, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for spectra in DataLoader(Spectra(), 16, num_workers=workers):
        loss = (model(spectra) - spectra.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(workers=4 * len(os.sched_getaffinity(0)))
