"""A profiler's region around every single operation, left in after an investigation."""

import sys

import torch
from torch import nn
from torch.profiler import record_function
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 40


def train(region):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(40))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    for (state,) in DataLoader(TensorDataset(torch.randn(8 * BATCHES, 16)), batch_size=8):
        x = state
        for number, layer in enumerate(layers):
            with region(f"layer {number}"):
                with region("linear"), region("weights"), region("step"):
                    y = layer(x)
                with region("tanh"), region("activation"), region("step"):
                    x = torch.tanh(y)
        loss = x.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(record_function)
