"""A table for each of many features, and an optimizer that updates them one after the other."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FEATURES, VALUES = 120, 16
BATCHES = 40


class Model(nn.Module):
    """The sum over features of what each of their values is worth."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ParameterList(torch.zeros(VALUES, 8) for _ in range(FEATURES))
        self.head = nn.Linear(8, 1)

    def forward(self, features):
        worth = torch.stack(list(self.tables))
        return self.head(worth[torch.arange(FEATURES), features].mean(1))


def train(**options):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    features, wanted = torch.randint(0, VALUES, (64 * BATCHES, FEATURES)), torch.randn(64 * BATCHES, 1)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, **options)
    for batch, values in DataLoader(TensorDataset(features, wanted), batch_size=64):
        loss = nn.functional.mse_loss(model(batch), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    train()
