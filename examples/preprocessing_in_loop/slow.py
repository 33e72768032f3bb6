"""Texts become numbers in the training loop, before each step and in each epoch again."""

import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader

WORDS = [f"word{number}" for number in range(1000)]
NUMBERS = {word: number for number, word in enumerate(WORDS)}
BATCHES = 10
EPOCHS = 4


def write_texts(count):
    dice = random.Random(0)
    return [" ".join(dice.choices(WORDS, k=1000)).title() for _ in range(count)]


def tokenize(texts):
    """Return the numbers of the words of some texts, int64 (texts, words)."""
    return torch.tensor([[NUMBERS[word.lower()] for word in text.split()] for text in texts])


def batches():
    loader = DataLoader(write_texts(16 * BATCHES), batch_size=16)
    for _ in range(EPOCHS):
        yield from map(tokenize, loader)


def train(batches):
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is too small for more
    embedding, head = nn.Embedding(len(WORDS), 32), nn.Linear(32, len(WORDS))
    optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.5)
    for tokens in batches:
        loss = nn.functional.cross_entropy(head(embedding(tokens[:, :-1]).mean(1)), tokens[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    sys.stdout.write(f"loss {loss.item():.3f}\n")


if __name__ == "__main__":
    train(batches())
