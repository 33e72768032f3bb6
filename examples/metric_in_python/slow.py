"""A metric in plain Python, for every sample of every step."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LENGTH, SYMBOLS = 48, 8
BATCHES = 40


def edit_distance(one, other):
    """Return how many symbols must change, come or go to turn one sequence into the other."""
    last = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        now = [row]
        for column, right in enumerate(other, 1):
            now.append(min(last[column] + 1, now[-1] + 1, last[column - 1] + (left != right)))
        last = now
    return last[-1]


def train(every):
    """Train, and measure the edit distance after every so many steps."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    texts = torch.randint(0, SYMBOLS, (16 * BATCHES, LENGTH))
    model = nn.Sequential(nn.Embedding(SYMBOLS, 32), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, SYMBOLS))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    distance = 0
    for step, (batch,) in enumerate(DataLoader(TensorDataset(texts), batch_size=16)):
        scores = model(batch)
        loss = nn.functional.cross_entropy(scores.transpose(1, 2), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            distance = sum(map(edit_distance, scores.argmax(2).tolist(), batch.tolist()))
    sys.stdout.write(f"loss {loss.item():.3f}, distance {distance}\n")


if __name__ == "__main__":
    train(every=1)
