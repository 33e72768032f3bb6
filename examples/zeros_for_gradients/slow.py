"""Gradients are filled with zeros before each backward pass, which then adds to them."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 60


def train(set_to_none):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randint(0, 60_000, (16 * BATCHES, 4)), torch.randn(16 * BATCHES, 1))
    model = nn.Sequential(nn.EmbeddingBag(60_000, 64), nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for words, values in DataLoader(data, batch_size=16):
        loss = nn.functional.mse_loss(model(words), values)
        optimizer.zero_grad(set_to_none=set_to_none)
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(set_to_none=False)
