"""Two processes average each of a hundred small gradients on its own (``torchrun``)."""

import os
import sys

import torch
from torch import distributed, nn
from torch.utils.data import DataLoader, TensorDataset

BATCHES = 24
LAYERS = 50


def one_by_one(gradients):
    """Average over the processes, each gradient with a message of its own."""
    for gradient in gradients:
        distributed.all_reduce(gradient)
        gradient.div_(distributed.get_world_size())


def train(average):
    distributed.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(LAYERS)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (x,) in DataLoader(TensorDataset(torch.randn(16 * BATCHES, 64)), batch_size=16):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        average([parameter.grad for parameter in model.parameters()])
        optimizer.step()
    sys.stdout.write(f"rank {os.environ['RANK']}: loss {loss.item():.4f}\n")
    distributed.destroy_process_group()


if __name__ == "__main__":
    train(average=one_by_one)
