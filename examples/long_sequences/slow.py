"""Attention over 2048 places, of which each needs only the nearest: its cost grows with the square of the length."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LENGTH, WIDTH, HEADS = 2048, 32, 4
BATCHES = 24


class Block(nn.Module):
    """One block of a transformer.

    Args:
        window: Places that see each other.
    """

    def __init__(self, window):
        super().__init__()
        self.window = window
        self.inputs, self.outputs = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, x):
        x = x.reshape(-1, self.window, WIDTH)
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in self.inputs(x).chunk(3, -1))
        seen = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.outputs(seen.transpose(1, 2).flatten(2))


def train(window):
    torch.manual_seed(0)
    model = Block(window)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (x,) in DataLoader(TensorDataset(torch.randn(BATCHES, LENGTH, WIDTH)), batch_size=1):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(window=LENGTH)
