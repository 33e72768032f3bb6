"""NumPy's data are doubles, and the model was turned to double so that types match: all that follows is double."""

import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 80


def train(dtype):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    signals = np.random.default_rng(0).random((128 * BATCHES, 256)).astype(dtype)
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64))
    if dtype is np.float64:
        model = model.double()  # else: "mat1 and mat2 must have the same dtype"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.from_numpy(signals)), batch_size=128):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x[:, :64])
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(np.float64)
