"""Autograd's anomaly detection, switched on to find a NaN weeks ago and left on."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LAYERS, WIDTH = 24, 64
BATCHES = 40


def train():
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    readings, wanted = torch.randn(32 * BATCHES, WIDTH), torch.randn(32 * BATCHES, WIDTH)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch, values in DataLoader(TensorDataset(readings, wanted), batch_size=32):
        loss = nn.functional.mse_loss(model(batch), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    torch.autograd.set_detect_anomaly(True)
    train()
