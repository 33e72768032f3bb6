"""The same classifier with a 3 by 3 kernel in the middle: less than a fifth of the work."""

from slow import train
from torch import nn

if __name__ == "__main__":
    train(nn.Conv2d(64, 64, 3, padding=1))
