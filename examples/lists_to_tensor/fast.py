"""The same job; the frames become one array, whose memory the tensor takes over."""

import numpy as np
import torch
from slow import train


def at_once(frames):
    return torch.from_numpy(np.stack(frames))


if __name__ == "__main__":
    train(at_once)
