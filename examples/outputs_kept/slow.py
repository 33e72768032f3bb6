"""Each step's output is kept for a report at the end: the program's memory grows until the system ends it."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 400


def train(keep):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 4096))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for (readings,) in DataLoader(TensorDataset(torch.randn(128 * BATCHES, 256)), batch_size=128):
        output = model(readings)
        loss = output.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(keep(output))
    means = torch.tensor([torch.as_tensor(one).mean().item() for one in kept])
    sys.stdout.write(f"mean {means.mean().item():.4f}\n")


if __name__ == "__main__":
    train(keep=torch.Tensor.detach)
