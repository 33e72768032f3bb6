"""The same job; PyTorch's own function pads whole sequences at once."""

import torch
from slow import train
from torch.nn.utils.rnn import pad_sequence


def pad(items):
    """Return the signals of a batch as one tensor, filled up with zeros, and their means."""
    signals, means = zip(*items, strict=True)
    return pad_sequence(signals, batch_first=True), torch.stack(means)


if __name__ == "__main__":
    train(pad)
