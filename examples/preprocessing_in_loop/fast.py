"""The same texts, turned into numbers once, before the first step."""

from slow import BATCHES, EPOCHS, tokenize, train, write_texts
from torch.utils.data import DataLoader


def batches():
    loader = DataLoader(tokenize(write_texts(16 * BATCHES)), batch_size=16)
    for _ in range(EPOCHS):
        yield from loader


if __name__ == "__main__":
    train(batches())
