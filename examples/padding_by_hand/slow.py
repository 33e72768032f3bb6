"""Sequences of many lengths are put into one batch number by number, in a collate function written by hand."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCHES = 36


class Signals(Dataset):
    """Made-up signals of 40 to 160 values, and the mean to be learnt from each."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        lengths = torch.randint(40, 160, (count,), generator=generator).tolist()
        self.signals = [torch.randn(length, generator=generator) for length in lengths]

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, index):
        return self.signals[index], self.signals[index].mean()


def pad(items):
    """Return the signals of a batch as one tensor, filled up with zeros, and their means."""
    batch = torch.zeros(len(items), max(len(signal) for signal, _ in items))
    for row, (signal, _) in enumerate(items):
        for place, value in enumerate(signal):
            batch[row, place] = value
    return batch, torch.stack([mean for _, mean in items])


def train(collate):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(
        *(nn.Conv1d(1, 48, 9), nn.ReLU(), nn.Conv1d(48, 48, 9), nn.ReLU()),
        *(nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 1)),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for batch, means in DataLoader(Signals(16 * BATCHES), batch_size=16, collate_fn=collate):
        loss = nn.functional.mse_loss(model(batch[:, None])[:, 0], means)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(pad)
