"""A step uses a few rows of a large table, and its gradient and update go through all of them."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES, ROWS = 40, 200_000


def train(sparse):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    table, head = nn.Embedding(ROWS, 32, sparse=sparse), nn.Linear(32, 1)
    optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.01)
    for (ids,) in DataLoader(TensorDataset(torch.randint(ROWS, (64 * BATCHES, 8))), batch_size=64):
        loss = head(table(ids)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(sparse=False)
