"""Predictions with a model that was never told that training is over."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES, WIDTH = 80, 512


def predict(*, evaluate):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    layers = [nn.Linear(64, WIDTH)]
    for _ in range(4):
        layers += [nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.5)]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10))
    if evaluate:
        model.eval()
    found = []
    with torch.no_grad():
        for (batch,) in DataLoader(TensorDataset(torch.randn(256 * BATCHES, 64)), batch_size=256):
            found.append(model(batch).argmax(1))
    sys.stdout.write(f"class 0: {(torch.cat(found) == 0).sum().item()}\n")


if __name__ == "__main__":
    predict(evaluate=False)
