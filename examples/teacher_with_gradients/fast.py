"""The same; the teacher's parameters want no gradients."""

import torch
from slow import Teacher, train

if __name__ == "__main__":
    torch.manual_seed(0)
    train(Teacher().requires_grad_(False))
