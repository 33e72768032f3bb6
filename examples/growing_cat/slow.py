"""Read a long sequence in pieces, and copy all that was read before each time a piece is added."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

PIECES = 64
WIDTH = 8192
BATCHES = 8
EPOCHS = 3


def gather(pieces):
    """Return the pieces side by side, shape (batch, pieces, WIDTH)."""
    read = pieces[0]
    for piece in pieces[1:]:
        read = torch.cat([read, piece], dim=1)
    return read


def train(gathering):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # copying is bound by the memory, not by the cores
    sequences, values = torch.randn(4 * BATCHES, PIECES, WIDTH), torch.randn(4 * BATCHES, 1)
    scale = nn.Parameter(torch.ones(WIDTH))
    head = nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD([scale, *head.parameters()], lr=0.01)
    loader = DataLoader(TensorDataset(sequences, values), batch_size=4)
    for _ in range(EPOCHS):
        for batch, wanted in loader:
            pieces = (batch * scale).split(1, dim=1)
            loss = nn.functional.mse_loss(head(gathering(pieces).mean(1)), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    train(gather)
