"""A compiled model meets a new length in nearly every step, and is compiled for each of them."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCHES = 40


class Sentences(Dataset):
    """Made-up sentences, all of one batch alike in length."""

    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        return torch.randn(8, 20 + index, 32, generator=torch.Generator().manual_seed(index))


def train(pad):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # No backend: what costs here is tracing, on any machine and without a C++ compiler.
    torch._dynamo.config.cache_size_limit = 64  # noqa: SLF001 - the documented switch
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)] * 4
    model = torch.compile(nn.Sequential(*layers), backend="eager", dynamic=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (words,) in DataLoader(Sentences(), batch_size=1, collate_fn=list):
        loss = model(pad(words)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.4f}\n")


if __name__ == "__main__":
    train(pad=lambda words: words)
