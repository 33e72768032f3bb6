"""A student learns from a teacher, and the backward pass goes through the teacher too."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 80


class Teacher(nn.Module):
    """A large network that is not trained any more."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 64))

    def forward(self, x):
        """Return what the student should say."""
        return self.layers(x)


def train(teacher):
    torch.set_num_threads(1)
    student = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.randn(128 * BATCHES, 256)), batch_size=128):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(student(x), teacher(x))
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Teacher())
