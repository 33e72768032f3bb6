"""An activation written out as a formula: eight operators where PyTorch has one."""

import math
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LAYERS, WIDTH = 32, 32
BATCHES = 40


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class Net(nn.Module):
    """Many narrow layers.

    Args:
        activation: What stands between them.
    """

    def __init__(self, activation):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.activation = activation

    def forward(self, x):
        for layer in self.layers:
            x = x + self.activation(layer(x))
        return x


def train(activation):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    readings, wanted = torch.randn(16 * BATCHES, WIDTH), torch.randn(16 * BATCHES, WIDTH)
    model = Net(activation)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for batch, values in DataLoader(TensorDataset(readings, wanted), batch_size=16):
        loss = nn.functional.mse_loss(model(batch), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    train(gelu)
