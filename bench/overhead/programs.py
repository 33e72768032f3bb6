"""The study's three programs: thousands of tiny operators, a convolution network, a small transformer."""

import resource
import sys
import time

import torch
from torch import nn


def tiny(steps):
    """Thousands of operators on a few numbers each, updated by hand."""
    torch.manual_seed(0)
    weights = [torch.randn(8, 8, requires_grad=True) for _ in range(8)]
    x = torch.randn(8, 8)
    for _ in range(steps):
        total = x
        for _ in range(14):
            for weight in weights:
                total = torch.tanh(total @ weight * 0.1 + 0.01)
        total.sum().backward()
        with torch.no_grad():
            for weight in weights:
                weight -= 0.01 * weight.grad
                weight.grad = None


def conv(steps):
    """A residual convolution network."""
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
            )  # fmt: skip

        def forward(self, x):
            return torch.relu(x + self.body(x))

    model = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), *(Block(24) for _ in range(6)), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(24, 10))  # fmt: skip
    train(model, torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,)), steps)


def transformer(steps):
    """Four layers of a small transformer."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0.0)
    model = nn.Sequential(nn.Embedding(1000, 128), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False),
                          nn.Linear(128, 10), nn.Flatten(1), nn.LazyLinear(10))  # fmt: skip
    model(torch.randint(0, 1000, (8, 64)))
    train(model, torch.randint(0, 1000, (8, 64)), torch.randint(0, 10, (8,)), steps)


def train(model, x, y, steps):
    """Train on one batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    begun, cpu = time.perf_counter(), time.process_time()
    globals()[sys.argv[1]](int(sys.argv[2]))
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"loop_cpu_s {time.process_time() - cpu:.3f} loop_s {time.perf_counter() - begun:.3f} rss_kib {rss}")
