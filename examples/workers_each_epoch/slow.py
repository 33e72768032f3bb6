"""Short epochs, and each of them starts the loader's workers again."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 8
EPOCHS = 8


def train(**loader_options):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    data = TensorDataset(torch.randn(32 * BATCHES, 64), torch.randn(32 * BATCHES, 1))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, **loader_options)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(EPOCHS):
        for readings, values in loader:
            loss = nn.functional.mse_loss(model(readings), values)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train()
