"""A regression whose loss goes through the batch row by row in Python."""

import sys

import torch
from torch import nn

STEPS, ROWS, WIDTH = 60, 256, 64


def row_by_row(found, wanted, weight):
    total = torch.zeros(())
    for row in range(ROWS):
        error = found[row] - wanted[row]
        total = total + weight[row] * (error * error).mean()
    return total / ROWS


def train(loss_of):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, wanted, weight = torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH), torch.rand(ROWS)
    for _ in range(STEPS):
        loss = loss_of(model(inputs), wanted, weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    train(row_by_row)
