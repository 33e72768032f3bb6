"""Two workers compute spectra ahead of the training, on the one core that the job may use: each takes turns with it."""

import os
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLIPS, BATCH, STEPS = 32, 16, 80


def spectrum(clip):
    """Return a clip's spectrum, as a mean over shifts of it."""
    shifts = [np.log1p(np.abs(np.fft.rfft(np.roll(clip, shift)))) for shift in range(24)]
    return np.mean(shifts, 0)[:2048].astype(np.float32)


class Clips(Dataset):
    """Spectra of made-up noise.

    Args:
        prepared: Compute each clip's spectrum once, before training.
    """

    def __init__(self, *, prepared):
        self.clips = np.random.default_rng(0).normal(size=(CLIPS, 8192)).astype(np.float32)
        self.spectra = [spectrum(clip) for clip in self.clips] if prepared else None

    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        clip = index % CLIPS
        return torch.from_numpy(self.spectra[clip] if self.spectra else spectrum(self.clips[clip]))


def train(*, prepared):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # what a container of one core gives
    model = nn.Sequential(nn.Conv1d(1, 64, 9, 2), nn.ReLU(), nn.Conv1d(64, 64, 9, 2), nn.Flatten(), nn.LazyLinear(1))
    model(torch.zeros(1, 1, 2048))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for spectra in DataLoader(Clips(prepared=prepared), BATCH, num_workers=2):
        loss = (model(spectra[:, None]) - spectra.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(prepared=False)
