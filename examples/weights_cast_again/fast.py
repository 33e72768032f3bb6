"""The same job with weights that are in 16 bits from the start: nothing is left to convert."""

from contextlib import nullcontext

import torch
from slow import train

if __name__ == "__main__":
    train(torch.bfloat16, nullcontext())
