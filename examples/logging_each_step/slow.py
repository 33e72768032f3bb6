"""Every step writes all gradients of a layer to a log file."""

import sys
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WIDTH = 128
BATCHES = 40


def write_log(log, step, layer):
    print(step, layer.weight.grad.flatten().tolist(), file=log, flush=True)


def train(every):
    """Train, and write the log after every so many steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    readings, wanted = torch.randn(16 * BATCHES, WIDTH), torch.randn(16 * BATCHES, 1)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with tempfile.TemporaryFile("w") as log:
        for step, (batch, values) in enumerate(DataLoader(TensorDataset(readings, wanted), batch_size=16)):
            loss = nn.functional.mse_loss(model(batch), values)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                write_log(log, step, model[0])
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    train(every=1)
