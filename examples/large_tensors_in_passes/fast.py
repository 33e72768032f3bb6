"""The same pictures with three operators instead of six, which write into memory that is there."""

import torch
from slow import SIDE, train

BUFFER = torch.empty(4, 3, SIDE, SIDE)


def brighten(pictures):
    """Return the pictures brighter and with more contrast, within 0 and 1: ((p - 0.5) * 1.3 + 0.6) * 0.9."""
    return torch.mul(pictures, 1.17, out=BUFFER).sub_(0.045).clamp_(0.0, 1.0)


if __name__ == "__main__":
    train(brighten)
