"""Trains for a while where there is no Linux."""

import elsewhere
import torch
from torch import nn

if __name__ == "__main__":
    elsewhere.leave_linux()
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        model(torch.randn(64, 64)).square().mean().backward()
        optimizer.step()
