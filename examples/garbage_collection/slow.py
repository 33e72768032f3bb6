"""Each step keeps a record of every prediction beside many older ones: Python's collector goes through them all."""

import gc
import sys

import torch
from torch import nn

OLD_RECORDS = 200_000
STEPS, SAMPLES = 60, 4096


def train(frozen):
    """Train and keep records; where asked to, the collector stays off."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    readings, values = torch.randn(SAMPLES, 8), torch.randn(SAMPLES, 1)
    records = [[number, [0.0]] for number in range(OLD_RECORDS)]
    if frozen:  # no record refers to another, so nothing is left for the collector
        gc.freeze()
        gc.disable()
    for _ in range(STEPS):
        optimizer.zero_grad()
        answers = model(readings)
        loss = nn.functional.mse_loss(answers, values)
        loss.backward()
        optimizer.step()
        records.extend([number, [answer]] for number, answer in enumerate(answers[:, 0].tolist()))
    sys.stdout.write(f"loss {loss.item():.4f}, {len(records)} records\n")


if __name__ == "__main__":
    train(frozen=False)
